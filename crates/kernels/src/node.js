// The Node kernel, in two threads. The main one is the user's: cells are evaluated in it by the inspector's REPL
// mode, which knows top-level await, redeclared names and the value of the last expression. The other one (`serve`)
// talks to the host, so that an interrupt is heard while the main one spins.
({
  serve(channel, require) {
    const inspector = require("inspector");
    const { parentPort } = require("worker_threads");
    const session = new inspector.Session();
    session.connectToMainThread();
    let held = Buffer.alloc(0);
    let running = false;
    // The main thread stops by itself where it can, and then nothing has to be broken off.
    const PATIENCE_MS = 100;
    const PING_MS = 20;
    // While something is being broken off: whether that has happened, and the end that came meanwhile.
    let breaking;
    let patience;

    const interrupt = () => {
      if (!running) return;
      parentPort.postMessage({ kind: "interrupt" });
      clearTimeout(patience);
      patience = setTimeout(() => {
        if (!running || breaking) return;
        breaking = { landed: false, pings: 0, end: undefined };
        session.post("Runtime.terminateExecution", () => {
          if (breaking) breaking.landed = breaking.pings;
        });
        ping();
      }, PATIENCE_MS);
    };
    // It may hit the main thread when that has just come to rest, and then takes whatever it does next. So nothing
    // is said to the host, and nothing given to the main thread, before that has answered again.
    const ping = () => {
      if (!breaking) return;
      breaking.pings += 1;
      parentPort.postMessage({ kind: "ping", number: breaking.pings });
      breaking.timer = setTimeout(ping, PING_MS);
    };
    const answered = (number) => {
      if (!breaking || breaking.landed === false || number <= breaking.landed) return;
      clearTimeout(breaking.timer);
      const { end } = breaking;
      breaking = undefined;
      if (end !== undefined) tell("end", end);
      // What would have ended the cell may be what was hit.
      else parentPort.postMessage({ kind: "interrupt", again: true });
    };
    const tell = (kind, body) => {
      if (kind === "end") {
        running = false;
        clearTimeout(patience);
      }
      const bytes = Buffer.from(body);
      channel.write(Buffer.concat([Buffer.from(`${kind} ${bytes.length}\n`), bytes]));
    };

    const take = () => {
      for (;;) {
        const at = held.indexOf(0) + 1;
        if (at === 0) return;
        const end = at + Number(held.toString("latin1", 0, at - 1));
        if (held.length < end) return;
        const words = held.toString("utf8", at, end - 1).split("\0");
        held = held.subarray(end);
        if (words[0] === "interrupt") interrupt();
        if (words[0] !== "run") continue;
        running = true;
        const [, marker, count, language, variables, ...rest] = words;
        const env = rest.splice(0, 2 * Number(variables));
        parentPort.postMessage({ kind: "run", marker, count, language, env, code: rest.join("\0") });
      }
    };
    // A large message comes in many pieces, which are put together once.
    let pieces = [];
    channel.on("data", (data) => {
      pieces.push(data);
      if (pieces.length === 1) {
        setImmediate(() => {
          held = Buffer.concat([held, ...pieces]);
          pieces = [];
          take();
        });
      }
    });
    // Without its host it has no purpose.
    channel.on("error", () => {});
    channel.on("close", () => process.kill(process.pid, "SIGKILL"));
    parentPort.on("message", ({ kind, body, number }) => {
      if (kind === "pong") answered(number);
      else if (kind === "end" && breaking) breaking.end = body;
      else if (kind !== "end" || running) tell(kind, body);
    });
  },

  main(worker, require, load) {
    const { createRequire } = require("module");
    const fs = require("fs");
    const inspector = require("inspector");
    const module = require("module");
    const util = require("util");
    const vm = require("vm");

    // Larger results are not sent; the host would take twice as much for a lie.
    const SHOWN_MAX_BYTES = 8 << 20;
    const SHOWN_MAX_COUNT = 500;
    const { stdout, stderr } = process;
    const [writeOut, writeErr] = [stdout.write.bind(stdout), stderr.write.bind(stderr)];
    const send = (kind, body) => worker.postMessage({ kind, body: JSON.stringify(body) });
    const session = new inspector.Session();
    session.connect();
    const post = (method, parameters) =>
      new Promise((resolve, reject) =>
        session.post(method, parameters, (error, answer) => (error ? reject(error) : resolve(answer))),
      );

    // What a value looks like.
    const FORMS = {
      _repr_html_: "text/html",
      _repr_markdown_: "text/markdown",
      _repr_svg_: "image/svg+xml",
      _repr_png_: "image/png",
      _repr_jpeg_: "image/jpeg",
      _repr_latex_: "text/latex",
      _repr_json_: "application/json",
    };
    const asText = (form) => {
      if (typeof form === "string") return form;
      if (form instanceof Uint8Array) return Buffer.from(form).toString("base64");
      return JSON.stringify(form);
    };
    const forms = async (value) => {
      const data = {};
      if (value !== null && (typeof value === "object" || typeof value === "function")) {
        const add = (mime, form) => {
          const text = form === undefined || form === null ? undefined : asText(form);
          if (typeof text === "string" && !(mime in data)) data[mime] = text;
        };
        try {
          const bundle = value[Symbol.for("Jupyter.display")];
          if (typeof bundle === "function") {
            for (const [mime, form] of Object.entries((await bundle.call(value)) ?? {})) add(mime, form);
          }
        } catch {}
        for (const [name, mime] of Object.entries(FORMS)) {
          try {
            if (typeof value[name] === "function") add(mime, await value[name]());
          } catch {}
        }
      }
      data["text/plain"] ??= util.inspect(value);
      return data;
    };
    let shownCount = 0;
    const show = (kind, data) => {
      shownCount += 1;
      if (shownCount > SHOWN_MAX_COUNT) {
        if (shownCount === SHOWN_MAX_COUNT + 1) {
          writeErr(`[only the first ${SHOWN_MAX_COUNT} results of a cell are shown]\n`);
        }
        return;
      }
      const size = Object.values(data).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
      if (size > SHOWN_MAX_BYTES) {
        const note = `<a result of ${size} bytes is not shown: the most is ${SHOWN_MAX_BYTES}>`;
        const plain = data["text/plain"];
        data = { "text/plain": plain.length <= 1 << 20 ? plain : `${plain.slice(0, 1 << 20)}\n${note}` };
      }
      send(kind, data);
    };

    // From code to what the inspector can evaluate.
    const IMPORT = 'globalThis[Symbol.for("cofferdam.import")]';
    globalThis[Symbol.for("cofferdam.import")] = load;
    const clause = (text) => {
      const parts = [];
      let rest = text.trim();
      const star = /^(?:([\w$]+)\s*,\s*)?\*\s*as\s+([\w$]+)$/.exec(rest);
      if (star) return { all: star[2], default: star[1] };
      const named = /\{([^}]*)\}\s*$/.exec(rest);
      if (named) {
        for (const part of named[1].split(",").filter((part) => part.trim())) {
          parts.push(part.trim().replace(/\s+as\s+/, ": "));
        }
        rest = rest.slice(0, named.index).trim().replace(/,$/, "").trim();
      }
      if (rest) parts.unshift(`default: ${rest}`);
      return { names: parts };
    };
    const STATIC = /import\s*(?:([\w$\s{},*]+?)\s*from\s*)?("[^"\n]*"|'[^'\n]*')(?:\s*(?:with|assert)\s*\{[^}]*\})?/y;
    const statement = (match) => {
      const [text, names, name] = match;
      const lines = "\n".repeat(text.split("\n").length - 1);
      if (names === undefined) return `await ${IMPORT}(${name})${lines}`;
      const made = clause(names);
      if (made.all) {
        const also = made.default ? `, ${made.default} = ${made.all}.default` : "";
        return `const ${made.all} = await ${IMPORT}(${name})${also}${lines}`;
      }
      return `const { ${made.names.join(", ")} } = await ${IMPORT}(${name})${lines}`;
    };
    // Neither scripts nor the inspector know `import`, so it becomes a call. Everything else is left as it is: text,
    // comments and patterns are stepped over.
    const withoutImports = (code) => {
      if (!code.includes("import")) return code;
      let made = "";
      let at = 0;
      // What came before decides what a slash means.
      let before = "";
      const braces = [];
      const copy = (end) => {
        made += code.slice(at, end);
        at = end;
      };
      const past = (pattern) => {
        pattern.lastIndex = at;
        const found = pattern.exec(code);
        return found ? pattern.lastIndex : 0;
      };
      const template = () => {
        const end = past(/(?:\\[^]|\$(?!\{)|[^`\\$])*(?:`|\$\{|$)/y);
        if (code.startsWith("${", end - 2) && code[end - 1] === "{") braces.push("template");
        before = "`";
        copy(end);
      };
      while (at < code.length) {
        const c = code[at];
        let end = past(/\s+|\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)/y);
        if (end) {
          copy(end);
          continue;
        }
        end = past(/"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?/y);
        if (end) {
          before = '"';
          copy(end);
          continue;
        }
        if (c === "`") {
          copy(at + 1);
          template();
          continue;
        }
        const isValue = /^(?:[\w$)\]}"`]|[^\x00-\x7f])/.test(before) && !/^(?:return|typeof|case|in|of|do|else|void|await|yield|delete|instanceof|new|throw)$/.test(before);
        if (c === "/" && !isValue && (end = past(/\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/y))) {
          before = '"';
          copy(end);
          continue;
        }
        end = past(/[\p{ID_Start}$_#][\p{ID_Continue}$\u200c\u200d]*|\d[\w.]*/uy);
        if (end) {
          const word = code.slice(at, end);
          if (word === "import" && before !== ".") {
            STATIC.lastIndex = at;
            const found = braces.length === 0 && STATIC.exec(code);
            if (found) {
              made += statement(found);
              at = STATIC.lastIndex;
              before = '"';
              continue;
            }
            if (/^\s*\(/.test(code.slice(end, end + 100))) {
              made += IMPORT;
              at = end;
              before = "import";
              continue;
            }
          }
          before = word;
          copy(end);
          continue;
        }
        if (c === "{") braces.push("{");
        if (c === "}") {
          if (braces.pop() === "template") {
            copy(at + 1);
            template();
            continue;
          }
        }
        before = c;
        copy(at + 1);
      }
      return made;
    };

    // Types are taken away by node itself, or by what the image has for it.
    const PACKAGES = ["/usr/lib/node_modules/", "/usr/local/lib/node_modules/", "/usr/share/nodejs/"];
    const STRIPPERS = {
      amaro: (tool) => (code) => {
        try {
          return tool.transformSync(code, { mode: "strip-only" }).code;
        } catch (error) {
          throw new SyntaxError(String(error?.message ?? error).trim());
        }
      },
      typescript: (tool) => (code) => {
        const compilerOptions = { target: "esnext", module: "esnext", verbatimModuleSyntax: true };
        const made = tool.transpileModule(code, { compilerOptions, reportDiagnostics: true });
        const wrong = made.diagnostics?.find(({ category }) => category === 1);
        if (wrong) throw new SyntaxError(tool.flattenDiagnosticMessageText(wrong.messageText, "\n"));
        return made.outputText;
      },
      sucrase: (tool) => (code) => {
        const options = { transforms: ["typescript"], disableESTransforms: true, keepUnusedImports: true };
        return tool.transform(code, options).code;
      },
    };
    let stripTypes;
    const findStripper = () => {
      if (typeof module.stripTypeScriptTypes === "function") {
        return (code) => {
          // It warns that it may change, which is not the cell's business.
          const { emitWarning } = process;
          process.emitWarning = () => {};
          try {
            return module.stripTypeScriptTypes(code);
          } finally {
            process.emitWarning = emitWarning;
          }
        };
      }
      for (const [name, use] of Object.entries(STRIPPERS)) {
        for (const folder of [`${process.cwd()}/`, ...PACKAGES]) {
          try {
            return use(createRequire(folder)(folder.endsWith("node_modules/") ? folder + name : name));
          } catch {}
          try {
            return use(require(folder + name));
          } catch {}
        }
      }
      const error = new Error(
        `this image's node (${process.version}) cannot run TypeScript; it needs node 22.13 or newer, ` +
          "or one of the npm packages amaro, typescript and sucrase",
      );
      error.name = "TypeScriptUnavailable";
      error.stack = `${error.name}: ${error.message}`;
      throw error;
    };

    const prepare = (code, language) => {
      if (language === "typescript") {
        stripTypes ??= findStripper();
        code = stripTypes(code);
      }
      // What looks like a block and is an object is taken for one, as every REPL does.
      if (/^\s*\{/.test(code) && !/;\s*$/.test(code)) {
        try {
          new vm.Script(`(${code.trim()}\n)`);
          code = `(${code.trim()}\n)`;
        } catch {}
      }
      return withoutImports(code);
    };

    // The value behind what the inspector says.
    let taken;
    let holder;
    const valueOf = async (remote) => {
      const argument =
        remote.objectId !== undefined
          ? { objectId: remote.objectId }
          : "unserializableValue" in remote
            ? { unserializableValue: remote.unserializableValue }
            : { value: remote.value };
      if (remote.type === "undefined") return undefined;
      await post("Runtime.callFunctionOn", {
        functionDeclaration: "function (value) { this.take(value); }",
        objectId: holder,
        arguments: [argument],
      });
      if (remote.objectId !== undefined) session.post("Runtime.releaseObject", { objectId: remote.objectId });
      const value = taken;
      taken = undefined;
      return value;
    };

    const isOwnFrame = (line) => /cofferdam:kernel|node:inspector|node:internal|\bnode:vm\b|\[eval\]|\[worker eval\]/.test(line);
    const errorOf = (value, details, code) => {
      if (!util.types.isNativeError(value)) {
        const text = util.inspect(value);
        return { name: "Uncaught", value: text, traceback: [`Uncaught ${text}`] };
      }
      const name = String(value.name ?? "Error");
      const message = String(value.message ?? "");
      let lines = String(value.stack ?? `${name}: ${message}`).split("\n");
      // What lies below the cell is the kernel's own.
      const bottom = lines.findLastIndex((line) => /^\s+at .*\bcell-\d+:/.test(line));
      const own = lines.findIndex((line) => /^\s+at /.test(line) && isOwnFrame(line));
      const end = bottom >= 0 ? bottom + 1 : own >= 0 ? own : lines.length;
      lines = lines.filter((line, i) => !/^\s+at /.test(line) || (i < end && !isOwnFrame(line)));
      if (value instanceof SyntaxError && details && !lines.some((line) => /^\s+at /.test(line))) {
        const at = details.lineNumber ?? 0;
        const source = code.split("\n")[at];
        if (source !== undefined) {
          lines.unshift(`${details.url || "cell"}:${at + 1}`, source, `${" ".repeat(details.columnNumber ?? 0)}^`);
        }
      }
      if (value.cause !== undefined) lines.push(...`Caused by: ${util.inspect(value.cause)}`.split("\n"));
      return { name, value: message, traceback: lines.slice(0, 500) };
    };

    // Cells.
    let current;
    const finish = (cell, end) => {
      if (current !== cell || cell.isEnding) return;
      cell.isEnding = true;
      // Behind all that was written before, in the same streams.
      let left = 2;
      const marked = () => {
        left -= 1;
        if (left > 0 || current !== cell) return;
        current = undefined;
        send("end", end);
      };
      writeOut(cell.marker, marked);
      writeErr(cell.marker, marked);
    };
    // Where the streams may have been broken off themselves.
    const finishAgain = (cell, end) => {
      if (!cell) return;
      current = undefined;
      for (const descriptor of [1, 2]) {
        try {
          fs.writeSync(descriptor, cell.marker);
        } catch {}
      }
      send("end", end);
    };
    const interrupted = () => {
      const error = { name: "Interrupted", value: "the cell was interrupted", traceback: [] };
      return { interrupted: true, error };
    };
    const run = async (cell) => {
      current = cell;
      shownCount = 0;
      for (let i = 0; i < cell.env.length; i += 2) process.env[cell.env[i]] = cell.env[i + 1];
      let code = cell.code;
      try {
        code = prepare(code, cell.language);
      } catch (error) {
        return finish(cell, { error: errorOf(error) });
      }
      let answer;
      try {
        answer = await post("Runtime.evaluate", {
          expression: `${code}\n//# sourceURL=cell-${cell.count}`,
          replMode: true,
        });
      } catch {
        // It was terminated.
        return finish(cell, interrupted());
      }
      if (current !== cell) return;
      const { result, exceptionDetails: details } = answer;
      if (details) {
        const value = await valueOf(details.exception ?? result);
        return finish(cell, { error: errorOf(value, details, code) });
      }
      try {
        const value = await valueOf(result);
        if (value !== undefined) {
          const data = await forms(value);
          if (current === cell) show("result", data);
        }
        finish(cell, {});
      } catch (error) {
        finish(cell, { error: errorOf(error) });
      }
    };

    const tell = (error) => {
      const text = errorOf(error).traceback.join("\n");
      writeErr(`Uncaught in the background: ${text}\n`);
    };
    process.on("uncaughtException", tell);
    process.on("unhandledRejection", tell);
    process.on("SIGINT", () => {});
    const define = (name, value) =>
      Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
    define("require", createRequire(`${process.cwd()}/`));
    define("display", async (...values) => {
      for (const value of values) show("display", await forms(value));
    });
    process.execArgv.length = 0;
    delete process._eval;
    worker.on("message", (message) => {
      if (message.kind === "run") run(message);
      if (message.kind === "ping") worker.postMessage({ kind: "pong", number: message.number });
      if (message.kind !== "interrupt" || !current) return;
      if (message.again) finishAgain(current, interrupted());
      else finish(current, interrupted());
    });
    define(Symbol.for("cofferdam.holder"), { take: (value) => (taken = value) });
    post("Runtime.evaluate", { expression: 'globalThis[Symbol.for("cofferdam.holder")]' }).then(({ result }) => {
      holder = result.objectId;
      delete globalThis[Symbol.for("cofferdam.holder")];
      send("ready", { version: process.versions.node });
    });
  },
});
