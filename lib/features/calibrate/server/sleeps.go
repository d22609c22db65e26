package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// countSleeps runs a program and then prints "SLEEPS 123" on standard error: how often its threads have waited for something, and
// with them those of the processes that it has waited for. It returns the program's exit code.
func countSleeps(words []string) int {
	// The signal is sent when this thread ends.
	runtime.LockOSThread()
	command := exec.Command(words[0], words[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	err := command.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		fmt.Fprintln(os.Stderr, "SLEEPS", usage.Nvcsw)
	}
	if code := command.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 1
}
