// Connects to the host from a thread of its own, gets the kernel from there and becomes it.
{
  const { Worker } = require("worker_threads");
  const [port, token] = process.argv.splice(1);
  const thread = `
    const { parentPort, workerData } = require("worker_threads");
    const channel = require("net").connect(workerData.port, "127.0.0.1", () => channel.write(workerData.token));
    channel.setNoDelay(true);
    let held = Buffer.alloc(0);
    channel.on("data", function first(data) {
      held = Buffer.concat([held, data]);
      const at = held.indexOf(0) + 1;
      if (at === 0 || held.length < at + Number(held.toString("latin1", 0, at - 1))) return;
      channel.off("data", first);
      const source = held.toString("utf8", at, held.length - 1);
      parentPort.postMessage(source);
      require("vm").runInThisContext(source, { filename: "cofferdam:kernel" }).serve(channel, require);
    });`;
  const worker = new Worker(thread, { eval: true, workerData: { port: Number(port), token } });
  worker.once("message", (source) => {
    const load = (name, options) => import(name, options);
    require("vm").runInThisContext(source, { filename: "cofferdam:kernel" }).main(worker, require, load);
  });
}
