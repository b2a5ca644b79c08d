"""A program that speaks the protocol of docs/exec.md and does one thing wrong, by its first argument."""
import json, os, socket, subprocess, sys, time

way = sys.argv[1]
control, *channels = [socket.socket(fileno=int(fd)) for fd in os.environ["ASSAY_EXEC_FDS"].split(",")]
channel, count = channels[0], 0


def say(to, answer):
    to.sendall((json.dumps(answer) + "\n").encode())


asked = control.makefile("r")
for verb in ["describe", "deploy"]:
    assert json.loads(asked.readline())["do"] == verb
    if verb == "describe":
        say(control, {"did": verb, "version": 1, "stages": ["committed"], "kinds": ["submit"]})
    else:
        say(control, {"did": verb})

print("these are the last words of", way, file=sys.stderr, flush=True)
if way == "ends before the load":
    sys.exit(5)
for line in channel.makefile("r"):
    for transaction in json.loads(line)["tx"]:
        count += 1
        right = {"observed": [{"id": transaction["id"], "reached": "committed"}]}
        if count <= 20:
            say(channel, right)
        elif way == "ends":
            sys.exit(3)
        elif way == "leaves a child":
            subprocess.Popen(["sleep", "1000"], close_fds=False)
            os._exit(3)
        elif way == "closes":
            channel.shutdown(socket.SHUT_RDWR)
            time.sleep(1000)
        elif way == "babbles":
            channel.sendall(b"INFO: this is no JSON\n")
        elif way == "answers twice":
            say(channel, right)
            say(channel, right)
        elif way == "answers for a stranger":
            say(channel, {"observed": [{"id": 10**12, "reached": "committed"}]})
        elif way == "sends an endless line":
            piece = b"x" * (1 << 20)
            for _ in range(1024):
                channel.sendall(piece)
        elif way == "holds answers":
            pass
        else:
            sys.exit("no way is called " + way)
time.sleep(1000)
