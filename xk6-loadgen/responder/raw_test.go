package responder

import (
	"syscall"
	"testing"
)

// A client of raw system calls, which allocates nothing.

func rawDial(t testing.TB, port int) int {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: port}
	if err := syscall.Connect(fd, at); err != nil {
		t.Fatal(err)
	}
	return fd
}

func rawExchange(t testing.TB, fd int, request, buffer []byte, responseBytes int) {
	if _, err := syscall.Write(fd, request); err != nil {
		t.Fatal(err)
	}
	for got := 0; ; {
		n, err := syscall.Read(fd, buffer)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			if got != responseBytes {
				t.Fatalf("%d bytes of a response of %d", got, responseBytes)
			}
			return
		}
		got += n
	}
}

func rawClose(fd int) { syscall.Close(fd) }
