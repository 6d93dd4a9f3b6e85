# A terminal for a program, driven over pipes: lines of JSON come in ({"keys": …}, {"size": [rows, columns]},
# {"signal": n}), and what the terminal shows goes out. Leaves with the program's exit code; the last line on
# stderr says whether the terminal was left as it had been.
import fcntl, json, os, select, struct, subprocess, sys, termios

rows, columns = int(sys.argv[1]), int(sys.argv[2])
master, slave = os.openpty()


def resize(rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def begin():
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


resize(rows, columns)
before = termios.tcgetattr(slave)
child = subprocess.Popen(sys.argv[3:], stdin=slave, stdout=slave, stderr=slave, preexec_fn=begin)
pending = b""
inputs = [0, master]
while True:
    over = child.poll() is not None
    ready, _, _ = select.select(inputs, [], [], 0 if over else 0.05)
    if master in ready:
        os.write(1, os.read(master, 65536))
        continue
    if over:
        break
    if 0 in ready:
        read = os.read(0, 65536)
        if not read:
            inputs.remove(0)
        pending += read
        *lines, pending = pending.split(b"\n")
        for line in lines:
            told = json.loads(line)
            if "keys" in told:
                os.write(master, told["keys"].encode())
            elif "size" in told:
                resize(*told["size"])
            else:
                child.send_signal(told["signal"])
after = termios.tcgetattr(slave)
print("restored" if after == before else "changed", file=sys.stderr)
sys.exit(child.returncode if child.returncode >= 0 else 128 - child.returncode)
