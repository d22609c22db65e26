// A server with exact response times and CPU time. It listens on 127.0.0.1:$PORT and supports the part of HTTP/1.1 that a load
// generator needs: requests without a body, one at a time on a connection. See the flags below.
//
// Responses leave within 0.1 ms of the due time. CPU time is exact over many requests, because the requested CPU time includes
// the server's overhead with system calls. The overhead is about 15 µs, or 100 µs if the server sleeps before each request on a
// busy machine; the requested time must not be less.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// mostBody is less than the kernel's buffer of a connection, so that one write takes an answer.
const mostBody = 100_000

// answer is set once, before the first request. ab needs the field Connection.
var answer []byte

func answerOf(bodyBytes int) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s\n",
		bodyBytes, strings.Repeat(".", bodyBytes-1))
}

type server struct {
	schedule schedule
	cpu      work
	polls    bool
	epoll    int
	listener int
	began    time.Time
	// first is the time of the first request; -1 before that.
	first       int64
	connections map[int32]*connection
	accepted    int
	waiting     queue
	buffer      [16 << 10]byte
}

type connection struct {
	fd     int
	number int
	// matched counts the bytes read of the empty line that ends a request.
	matched int
}

func main() {
	workers := flag.Int("workers", 1, "workers, which each take one request at a time")
	service := flag.Duration("service", 0, "time that a request takes of a worker")
	uneven := flag.Bool("uneven", false, "of 4 workers, the first has 40 % of the connections, the others 30, 20 and 10")
	then := flag.Duration("then", 0, "time that an answer waits after its worker")
	stall := flag.Duration("stall", 0, "time in which no worker works: with -stall-after or -stall-each")
	stallAfter := flag.Int64("stall-after", 0, "requests between two stalls (one worker)")
	stallEach := flag.Duration("stall-each", 0, "time from a stall's end to the next one's, from the server's start")
	tail := flag.Duration("tail", 0, "time by which some answers are later: with -tail-each")
	tailEach := flag.Int64("tail-each", 1, "of so many answers one is later")
	tokens := flag.Float64("tokens", 0, "answers a second: each takes a token, or waits for one")
	burst := flag.Int64("burst", 1, "tokens that are kept at most")
	cpu := flag.Duration("cpu", 0, "CPU time of a request, before its answer")
	slowFor := flag.Duration("slow-for", 0, "time from the first request in which -cpu is twice as much")
	modes := flag.Float64("modes", 0, "share by which -cpu is more in half of all starts")
	body := flag.Int("body", 612, "bytes of an answer's body")
	after := flag.Duration("after", 0, "CPU time after each answer, whenever nobody asks")
	backlog := flag.Duration("backlog", 10*time.Millisecond, "CPU time of -after that may be left undone")
	poll := flag.Bool("poll", false, "it asks for requests again and again, and never waits for them")
	fork := flag.Duration("fork", 0, "CPU time of a request, most of it in a child process that answers")
	job := flag.Duration("job", 0, "CPU time of a thread that works in each -job-each, whether or not somebody asks")
	jobEach := flag.Duration("job-each", time.Second, "time from one -job to the next, from the server's start")
	processes := flag.Int("processes", 0, "processes that share the port, and so the connections")
	flag.String("name", "", "tells it apart from an equal one: a comparison of equal commands would have no verdict")
	flag.Parse()
	if *body < 1 || *body > mostBody {
		fmt.Fprintf(os.Stderr, "-body %d: name 1 to %d\n", *body, mostBody)
		os.Exit(2)
	}
	answer = answerOf(*body)

	s := server{schedule: newSchedule(*workers, *service), first: -1, connections: map[int32]*connection{}}
	s.schedule.uneven, s.schedule.then = *uneven, int64(*then)
	s.schedule.stall, s.schedule.stallAfter, s.schedule.stallEach = int64(*stall), *stallAfter, int64(*stallEach)
	s.schedule.tail, s.schedule.tailEach = int64(*tail), *tailEach
	if *tokens > 0 {
		s.schedule.interval, s.schedule.burst = int64(float64(time.Second) / *tokens), *burst
	}
	before := float64(*cpu)
	if time.Now().UnixNano()/1000%2 == 1 {
		before *= 1 + *modes
	}
	s.cpu = work{before: int64(before), slowFor: int64(*slowFor), after: int64(*after), backlog: int64(*backlog), fork: int64(*fork)}
	s.polls = *poll
	if *job > 0 {
		s.cpu.job = startJob(*job, *jobEach)
	}

	// Requests do not allocate, and the garbage collector's threads would add CPU time.
	debug.SetGCPercent(-1)
	runtime.LockOSThread()
	if err := s.listen(*processes > 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for range *processes - 1 {
		if err := startAnother(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := s.serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// startAnother starts a process with the same flags, which listens on the same port. It ends with this one.
func startAnother() error {
	_, err := syscall.ForkExec("/proc/self/exe", append(os.Args, "-processes", "1"), &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	return err
}

func (s *server) listen(shared bool) error {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		return fmt.Errorf("PORT: %w", err)
	}
	if s.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return err
	}
	s.listener, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := syscall.SetsockoptInt(s.listener, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if shared {
		const soReusePort = 15
		if err := syscall.SetsockoptInt(s.listener, syscall.SOL_SOCKET, soReusePort, 1); err != nil {
			return err
		}
	}
	if err := syscall.Bind(s.listener, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("127.0.0.1:%d: %w", port, err)
	}
	if err := syscall.Listen(s.listener, 4096); err != nil {
		return err
	}
	return s.watch(s.listener)
}

func (s *server) watch(fd int) error {
	return syscall.EpollCtl(s.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
}

// serve returns only on an error.
func (s *server) serve() error {
	if err := exactTimeouts(); err != nil {
		return err
	}
	s.began = time.Now()
	// If a response costs CPU time, requests are read one by one: with batches, a request that just misses a batch waits for two.
	events := make([]syscall.EpollEvent, 1)
	if !s.schedule.empty() {
		events = make([]syscall.EpollEvent, 256)
	}
	for {
		n, err := epollWait(s.epoll, events, s.timeout())
		if err != nil {
			return err
		}
		now := s.now()
		if s.polls && n == 0 {
			s.cpu.begin() // Time in which nobody asked is no request's
		}
		for _, event := range events[:n] {
			s.handle(event, now)
			s.answerDue()
		}
		s.answerDue()
		if n == 0 {
			s.cpu.workOff()
		}
		s.cpu.reap()
	}
}

func (s *server) now() int64 { return int64(time.Since(s.began)) }

// timeout returns the nanoseconds until the next scheduled work; -1 if there is none.
func (s *server) timeout() int64 {
	if s.cpu.owed > 0 || s.polls {
		return 0
	}
	if len(s.waiting) > 0 {
		return max(0, s.waiting[0].due-s.now())
	}
	return s.cpu.reapSoon()
}

func (s *server) handle(event syscall.EpollEvent, now int64) {
	if int(event.Fd) == s.listener {
		s.accept()
		return
	}
	c := s.connections[event.Fd]
	n, err := syscall.Read(c.fd, s.buffer[:])
	if err == syscall.EAGAIN || err == syscall.EINTR {
		return
	}
	if err != nil || n == 0 {
		delete(s.connections, event.Fd)
		// A child may share the connection; then closing the descriptor does not remove it from epoll.
		_ = syscall.EpollCtl(s.epoll, syscall.EPOLL_CTL_DEL, c.fd, nil)
		syscall.Close(c.fd)
		return
	}
	for range c.requestsIn(s.buffer[:n]) {
		s.request(c, now)
	}
}

func (s *server) request(c *connection, now int64) {
	if s.first < 0 {
		s.first = now
		s.cpu.begin()
	}
	if s.cpu.fork > 0 {
		s.cpu.forkFor(c.fd)
		return
	}
	due := s.schedule.due(now, c.number)
	s.cpu.request(now - s.first)
	if s.schedule.empty() {
		reply(c)
		return
	}
	s.waiting.push(waiting{due: due, to: c})
}

func (s *server) answerDue() {
	for len(s.waiting) > 0 && s.waiting[0].due <= s.now() {
		reply(s.waiting.pop())
	}
}

// reply ignores errors; the connection's next read reports them. The kernel takes an answer at once, see mostBody.
func reply(c *connection) { _, _ = syscall.Write(c.fd, answer) }

func (s *server) accept() {
	for {
		fd, _, err := syscall.Accept4(s.listener, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
		_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_SNDBUF, 2*mostBody)
		s.connections[int32(fd)] = &connection{fd: fd, number: s.accepted}
		s.accepted++
		if s.watch(fd) != nil {
			delete(s.connections, int32(fd))
			syscall.Close(fd)
		}
	}
}

// requestsIn counts the requests that end in the bytes.
func (c *connection) requestsIn(bytes []byte) (requests int) {
	const end = "\r\n\r\n"
	for _, b := range bytes {
		switch {
		case b == end[c.matched]:
			c.matched++
		case b == '\r':
			c.matched = 1
		default:
			c.matched = 0
		}
		if c.matched == len(end) {
			requests++
			c.matched = 0
		}
	}
	return requests
}

// exactTimeouts turns off timer slack, which lets Linux wake a thread up to 50 µs late.
func exactTimeouts() error {
	const prSetTimerslack = 29
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerslack, 1, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// epollWait waits for at most the given nanoseconds; -1: no limit. Go's EpollWait takes milliseconds.
func epollWait(epoll int, events []syscall.EpollEvent, timeout int64) (int, error) {
	const epollPwait2 = 441
	var limit *syscall.Timespec
	if timeout >= 0 {
		spec := syscall.NsecToTimespec(timeout)
		limit = &spec
	}
	n, _, errno := syscall.Syscall6(epollPwait2, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)),
		uintptr(unsafe.Pointer(limit)), 0, 0)
	if errno == syscall.EINTR {
		return 0, nil
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
