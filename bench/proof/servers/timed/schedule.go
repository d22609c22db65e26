package main

import "time"

// schedule says when answers are due. Times are nanoseconds since the server's start, and no timer's lateness gets into them: a
// worker takes its next request when the one before was due, not when its answer left.
type schedule struct {
	// free is when each worker can begin its next request.
	free    []int64
	service int64
	// uneven: connections belong to the four workers as 4:3:2:1. Otherwise the worker that is free first takes a request.
	uneven bool
	// A stall stops all workers: after so many requests (one worker), or at the end of each stretch of stallEach.
	stall      int64
	stallAfter int64
	stallEach  int64
	served     int64
	// Token bucket: each answer takes a token, of which one comes every `interval`, and at most `burst` are kept.
	interval int64
	burst    int64
	full     int64
	// then is waited after the worker, and takes none.
	then int64
}

// unevenWorkers has the worker of each connection by the last digit of its number.
var unevenWorkers = [10]int{0, 0, 0, 0, 1, 1, 1, 2, 2, 3}

// due returns when the answer has to leave to a request that came at now. Calls are in the order of now.
func (s *schedule) due(now int64, connection int) int64 {
	worker := s.worker(connection)
	done := s.finish(max(now, s.free[worker]))
	s.served++
	s.free[worker] = done
	if s.stallAfter > 0 && s.served%s.stallAfter == 0 {
		s.free[worker] += s.stall
	}
	return s.token(done) + s.then
}

func (s *schedule) worker(connection int) int {
	if s.uneven {
		return unevenWorkers[connection%len(unevenWorkers)]
	}
	first := 0
	for worker, free := range s.free {
		if free < s.free[first] {
			first = worker
		}
	}
	return first
}

// finish returns when a request is done that a worker begins at start. A stall makes it wait.
func (s *schedule) finish(start int64) int64 {
	if s.stallEach == 0 {
		return start + s.service
	}
	stretch := start / s.stallEach * s.stallEach
	stallBegins, stallEnds := stretch+s.stallEach-s.stall, stretch+s.stallEach
	if start >= stallBegins {
		return stallEnds + s.service
	}
	if start+s.service > stallBegins {
		return start + s.service + s.stall
	}
	return start + s.service
}

// token returns when an answer that is done gets its token. `full` is when the bucket would be full if nobody asked.
func (s *schedule) token(done int64) int64 {
	if s.interval == 0 {
		return done
	}
	taken := max(done, s.full-(s.burst-1)*s.interval)
	s.full = max(s.full, taken) + s.interval
	return taken
}

// empty returns whether nothing of the schedule makes a request wait.
func (s *schedule) empty() bool {
	return s.service == 0 && s.then == 0 && s.interval == 0
}

func newSchedule(workers int, service time.Duration) schedule {
	return schedule{free: make([]int64, workers), service: int64(service)}
}
