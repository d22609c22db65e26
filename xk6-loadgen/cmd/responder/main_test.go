package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be the command.
func TestMain(m *testing.M) {
	if os.Getenv("BE_RESPONDER") != "" {
		main()
	}
	os.Exit(m.Run())
}

// started is a responder as a process of its own, with a limit of files where that is not 0.
func started(t *testing.T, files int, words ...string) (*exec.Cmd, string) {
	t.Helper()
	command := exec.Command(os.Args[0], words...)
	if files > 0 {
		command = exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, files), os.Args[0]}, words...)...)
	}
	command.Env = append(os.Environ(), "BE_RESPONDER=1")
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "listening ")
	if err != nil || !found {
		t.Fatalf("the first line is %q (%v)", line, err)
	}
	return command, address
}

func TestItAnswersUntilItIsTold(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		command, address := started(t, 0, "--protocol", "http/1.1", "--body-bytes=7", "--threads", "2")
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n")
		c.SetDeadline(time.Now().Add(20 * time.Second))
		if all, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(all), "\r\n\r\nxxxxxxx") {
			t.Errorf("answered with %q (%v)", all, err)
		}
		// One that stays open does not keep it.
		if _, err = net.Dial("tcp", address); err != nil {
			t.Fatal(err)
		}
		command.Process.Signal(signal)
		if err := command.Wait(); err != nil {
			t.Errorf("after %s: %v", signal, err)
		}
	}
}

// With fewer files than connections it serves as many as it can, and the others when those end.
func TestMoreConnectionsThanFiles(t *testing.T) {
	const files, connections = 100, 150
	_, address := started(t, files, "--protocol", "http/1.1", "--body-bytes", "1", "--threads", "2")
	var all [connections]net.Conn
	for i := range all {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprint(c, "GET / HTTP/1.1\r\n\r\n")
		all[i] = c
	}
	for i, c := range all {
		if n, err := c.Read(make([]byte, 1000)); n == 0 {
			t.Fatalf("connection %d: %v", i, err)
		}
		c.Close()
	}
}

func TestWrongWords(t *testing.T) {
	for words, want := range map[string]string{
		"":                                    "--protocol is missing: http/1.1, h2 or h2c",
		"--protocol h2c":                      "--body-bytes is missing: the length of every response's body, 0 or more",
		"--protocol h2c --body-bytes -5":      "--body-bytes is missing: the length of every response's body, 0 or more",
		"--protocol h2c --body-bytes ten":     `invalid value "ten" for flag -body-bytes: parse error`,
		"--protocol h3 --body-bytes 1":        `--protocol "h3" is not known; use http/1.1, h2 or h2c`,
		"--protocol h2 --body-bytes 1":        "--protocol h2 is HTTP/2 over TLS: name a file with --certificate, or use h2c",
		"--port 80":                           "flag provided but not defined: -port",
		"--protocol h2c --body-bytes 1 again": `"again" is no flag; see responder --help`,
		"--protocol http/1.1 --body-bytes 1 --certificate /nowhere/x.pem": "--certificate cannot be read: open /nowhere/x.pem: no such file or directory",
	} {
		var out, complaints bytes.Buffer
		if code := run(strings.Fields(words), &out, &complaints); code != 2 || out.Len() > 0 || complaints.String() != "responder: "+want+"\n" {
			t.Errorf("%q: %d, %q on stdout, %q on stderr, want %q", words, code, &out, &complaints, want)
		}
	}
	var out bytes.Buffer
	if code := run([]string{"--help"}, &out, io.Discard); code != 0 || out.String() != usage {
		t.Errorf("--help: %d, %q", code, &out)
	}
}
