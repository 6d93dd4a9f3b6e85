// Waits for one program and becomes `node -e` of it: started ahead, in a sandbox that serves only once.
// Two frames of it stay below the program's own; nothing else of it can be seen from there.
{
  const fs = require("fs");
  const vm = require("vm");
  const importModuleDynamically = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  const compile = (code) => {
    if (importModuleDynamically === undefined) throw new Error("this node cannot import from there");
    return new vm.Script(code, { filename: "[eval]", importModuleDynamically });
  };
  // Its first import warns that such imports may change, which is not the program's business.
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    compile("import('fs')").runInThisContext().catch(() => {});
  } catch {}
  process.emitWarning = emitWarning;
  fs.writeSync(1, "\0\0\0\0\0");
  const take = (count) => {
    const bytes = Buffer.alloc(count);
    for (let at = 0; at < count; ) {
      const read = fs.readSync(0, bytes, at, count - at, null);
      if (read === 0) process.reallyExit(0);
      at += read;
    }
    return bytes;
  };
  const [hasInput, count, code, ...rest] = take(take(4).readUInt32LE()).toString().split("\0");
  if (hasInput === "0") {
    fs.closeSync(0);
    fs.openSync("/dev/null", "r");
  }
  for (const name of Object.keys(process.env)) delete process.env[name];
  for (const word of rest.splice(Number(count))) {
    const cut = word.indexOf("=");
    process.env[word.slice(0, cut)] = word.slice(cut + 1);
  }
  const becomeIt = () => {
    const options = { stdio: "inherit", argv0: "node" };
    const ended = require("child_process").spawnSync(process.execPath, ["-e", code, "--", ...rest], options);
    if (ended.signal) process.kill(process.pid, ended.signal);
    process.reallyExit(ended.status);
  };
  process.argv.push(...rest);
  process.execArgv.splice(0, process.execArgv.length, "-e", code);
  process._eval = code;
  let program;
  try {
    program = compile(code);
  } catch {
    // A module, another language, or an error: node itself knows best what to do with it.
    becomeIt();
  }
  program.runInThisContext();
}
