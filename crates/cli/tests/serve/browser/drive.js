// Somebody at a browser: Chromium, driven over its own protocol by a pipe, on a page that this script serves. What is
// checked is what the page shows. Leaves with 0, or says what was not so.
const { spawn } = require("child_process");
const fs = require("fs");
const http = require("http");
const path = require("path");

const [api, processPath, folder] = process.argv.slice(2);
const key = process.env.COFFERDAM_API_KEY;
const PATIENCE = 60000;
let chromium;

const ask = (method, where, body) =>
  new Promise((resolve, reject) => {
    const request = http.request(api + where, { method, headers: { "X-API-Key": key } }, (answer) => {
      let text = "";
      answer.on("data", (part) => (text += part));
      answer.on("end", () => (answer.statusCode < 300 ? resolve(text) : reject(new Error(`${where}: ${text}`))));
    });
    request.on("error", reject);
    request.end(body);
  });

// The page's own server: it has the key, and gives the page tickets for its origin.
function servePage() {
  const page = fs.readFileSync(path.join(__dirname, "page.html"));
  const server = http.createServer(async (request, answer) => {
    if (request.url !== "/ticket") return answer.setHeader("content-type", "text/html"), answer.end(page);
    const origin = `http://127.0.0.1:${server.address().port}`;
    const made = JSON.parse(await ask("POST", `${processPath}/tickets`, JSON.stringify({ origin })));
    answer.end(JSON.stringify({ url: api.replace("http:", "ws:") + made.url }));
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

function startChromium() {
  const options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--remote-debugging-pipe", `--user-data-dir=${folder}/profile`, "--window-size=800,600", "about:blank"];
  chromium = spawn("chromium", options, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  let number = 0, pending = "";
  const waiting = new Map();
  chromium.stdio[4].on("data", (part) => {
    const messages = (pending + part).split("\0");
    pending = messages.pop();
    for (const message of messages.map((text) => JSON.parse(text))) {
      const { resolve, reject } = waiting.get(message.id) || {};
      waiting.delete(message.id);
      if (message.error) reject(new Error(JSON.stringify(message.error)));
      else if (resolve) resolve(message.result);
    }
  });
  return (method, params = {}, sessionId) =>
    new Promise((resolve, reject) => {
      waiting.set(++number, { resolve, reject });
      chromium.stdio[3].write(JSON.stringify({ id: number, method, params, sessionId }) + "\0");
    });
}

async function openPage(command, url) {
  const { targetId } = await command("Target.createTarget", { url });
  const { sessionId } = await command("Target.attachToTarget", { targetId, flatten: true });
  const send = (method, params) => command(method, params, sessionId);
  const evaluate = async (expression) =>
    (await send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true })).result.value;
  const text = (id) => evaluate(`(document.getElementById("${id}") || {}).textContent || ""`);
  const until = async (id, what, is) => {
    const began = Date.now();
    for (;;) {
      const shown = await text(id);
      if (is(shown)) return shown;
      if (Date.now() - began > PATIENCE) throw new Error(`${what}; the page shows: ${JSON.stringify(shown)}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const type = async (keys) => {
    for (const letter of keys) {
      const name = letter === "\n" ? "Enter" : letter;
      const written = letter === "\n" ? "\r" : letter;
      await send("Input.dispatchKeyEvent", { type: "keyDown", key: name, text: written });
      await send("Input.dispatchKeyEvent", { type: "keyUp", key: name });
    }
  };
  return { send, evaluate, text, until, type };
}

async function main() {
  const server = await servePage();
  const port = server.address().port;
  const command = startChromium();
  const page = await openPage(command, `http://127.0.0.1:${port}/`);
  await page.until("state", "it connects", (shown) => shown === "connected");

  await page.type("echo $((6*7))-typed\n");
  await page.until("screen", "what is typed is answered", (shown) => shown.includes("\n42-typed\n"));
  // Not before the shell runs something: it writes back the size that it has read before each prompt.
  await page.type('echo looks-$((1+1)); until [ "$(stty size)" = "20 90" ]; do sleep 0.1; done; stty size\n');
  await page.until("screen", "it looks", (shown) => shown.includes("\nlooks-2\n"));
  await page.send("Emulation.setDeviceMetricsOverride", { width: 900, height: 400, deviceScaleFactor: 1, mobile: false });
  await page.until("screen", "its size is that of the window", (shown) => shown.includes("\n20 90\n"));
  await page.type("echo it-runs; sleep 641\n");
  await page.until("screen", "it runs", (shown) => shown.includes("\nit-runs\n"));
  await page.send("Input.dispatchKeyEvent", { type: "keyDown", key: "c", modifiers: 2 });
  await page.type("echo code-$?\n");
  await page.until("screen", "Ctrl-C ends what runs", (shown) => shown.includes("code-130"));

  // Cut off: what is written meanwhile is there when it comes back, once, and so is what was before.
  await page.evaluate("cut()");
  await page.until("state", "it is cut off", (shown) => shown.startsWith("closed"));
  await ask("POST", `${processPath}/input`, "echo away-$((1+1))\n");
  await page.evaluate("mend()");
  const mended = await page.until("screen", "what was missed comes", (shown) => shown.includes("\naway-2\n"));
  for (const once of ["\n42-typed\n", "\naway-2\n"]) {
    if (mended.split(once).length !== 2) throw new Error(`not once: ${once} in ${JSON.stringify(mended)}`);
  }
  // A page that is loaded again has everything from the beginning.
  await page.send("Page.reload");
  const again = await page.until("screen", "all of it is replayed", (shown) => shown.includes("\naway-2\n"));
  if (!again.includes("\n42-typed\n")) throw new Error(`the replay lacks its beginning: ${JSON.stringify(again)}`);

  // The same page under another name is another origin, for which nobody made a ticket.
  const foreign = await openPage(command, `http://localhost:${port}/`);
  await foreign.until("state", "a page of another origin is refused", (shown) => shown === "closed 1006");

  const { data } = await page.send("Page.captureScreenshot", { format: "png" });
  fs.writeFileSync(`${folder}/terminal.png`, Buffer.from(data, "base64"));
  await page.type("exit 3\n");
  await page.until("state", "the end is told", (shown) => shown === "ended with 3");
  // It writes to its profile until its end, and whoever waits for this program removes that.
  const ended = new Promise((resolve) => chromium.once("exit", resolve));
  await command("Browser.close");
  await ended;
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error.message);
    if (chromium) chromium.kill("SIGKILL");
    process.exit(1);
  },
);
