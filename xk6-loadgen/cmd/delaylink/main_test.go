package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if os.Getenv("BE_DELAYLINK") != "" {
		main()
		os.Exit(0) // or it would start itself again and again
	}
	os.Exit(m.Run())
}

const order = `{"toServer":{"delayMs":100},"toClient":{"delayMs":0},"settings":[]}` + "\n"

func command(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], words...)
	c.Env = append(os.Environ(), "BE_DELAYLINK=1")
	return c
}

func TestWrongInput(t *testing.T) {
	for _, c := range []struct{ words, in, want string }{
		{"--help", "", `unknown argument "--help": it has none, and reads its order as a line of JSON from its input (lib/features/network/network.ts)`},
		{"", "\n", "the order cannot be read: EOF"},
		{"", strings.Repeat(" ", 2<<20), "its input cannot be read: bufio.Scanner: token too long"},
	} {
		command := command(t, strings.Fields(c.words)...)
		var out, complaints bytes.Buffer
		command.Stdin, command.Stdout, command.Stderr = strings.NewReader(c.in), &out, &complaints
		command.Run()
		if code := command.ProcessState.ExitCode(); code != 1 || out.Len() > 0 || complaints.String() != "delaylink: "+c.want+"\n" {
			t.Errorf("%q: %d, %q on stdout, %q on stderr, want %q", c.in, code, &out, &complaints, c.want)
		}
	}
}

func TestNoInput(t *testing.T) {
	c := command(t)
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%q (%v)", out, err)
	}
}

func TestWithoutRights(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can give its rights up")
	}
	for name, c := range map[string]struct {
		flags uintptr
		want  string
	}{
		"without a namespace of users": {0, "delaylink: no network namespace can be made: operation not permitted; run it as root, or in a user namespace (unshare --user --map-root-user)\n"},
		"in a namespace of users":      {syscall.CLONE_NEWUSER, "delaylink: /dev/net/tun cannot be opened: permission denied; run it as root, or let this user read and write it\n"},
	} {
		if info, err := os.Stat("/dev/net/tun"); c.flags != 0 && (err != nil || info.Mode()&0o006 != 0) {
			t.Logf("SKIPPED %s: /dev/net/tun is open to everybody, or not there (%v)", name, err)
			continue
		}
		command := command(t)
		// The binary of a test is in a folder that nobody else may enter.
		binary, err := os.Open("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		defer binary.Close()
		command.ExtraFiles = []*os.File{binary}
		command.Path = "/proc/self/fd/3"
		const nobody = 65534
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if c.flags != 0 {
			// Who is root in there is nobody outside.
			command.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags: c.flags, Credential: &syscall.Credential{},
				UidMappings: []syscall.SysProcIDMap{{HostID: nobody, Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: nobody, Size: 1}},
			}
		}
		command.Stdin = strings.NewReader(order)
		out, err := command.CombinedOutput()
		if strings.Contains(string(out), "no network namespace") && c.flags != 0 || err != nil && command.ProcessState == nil {
			t.Logf("SKIPPED %s: there can be no user namespace here: %v, %q", name, err, out)
			continue
		}
		if command.ProcessState.ExitCode() != 1 || string(out) != c.want {
			t.Errorf("%s: %v, %q", name, err, out)
		}
	}
}

func started(t *testing.T) (c *exec.Cmd, in io.WriteCloser, complaints *bytes.Buffer) {
	t.Helper()
	if fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		t.Skipf("SKIPPED: /dev/net/tun is needed, and opening it says: %v", err)
	} else {
		unix.Close(fd)
	}
	if err := exec.Command("unshare", "--net", "true").Run(); err != nil {
		t.Skipf("SKIPPED: network namespaces are needed, and unshare --net says: %v", err)
	}
	c, complaints = command(t), &bytes.Buffer{}
	c.Stderr = complaints
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	io.WriteString(in, order)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, `{"server":{"netns":"/proc/`) {
		t.Fatalf("the first line is %q (%v), and %q on stderr", line, err, complaints)
	}
	return c, in, complaints
}

func wait(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	timer := time.AfterFunc(20*time.Second, func() {
		t.Error("it does not end")
		c.Process.Kill()
	})
	defer timer.Stop()
	c.Wait()
	return c.ProcessState.ExitCode()
}

func TestItEnds(t *testing.T) {
	for name, end := range map[string]func(c *exec.Cmd){
		"TERM": func(c *exec.Cmd) { c.Process.Signal(syscall.SIGTERM) },
		"INT":  func(c *exec.Cmd) { c.Process.Signal(syscall.SIGINT) },
	} {
		c, _, complaints := started(t)
		end(c)
		if code := wait(t, c); code != 0 || complaints.Len() > 0 {
			t.Errorf("%s: %d, %q", name, code, complaints)
		}
	}
}

func TestUnknownWord(t *testing.T) {
	c, in, complaints := started(t)
	io.WriteString(in, "reprot\n")
	if code := wait(t, c); code != 1 || complaints.String() != "delaylink: unknown command \"reprot\": there are counts, mark and report\n" {
		t.Errorf("%d, %q", code, complaints)
	}
}
