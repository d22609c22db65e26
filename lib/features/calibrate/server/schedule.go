package main

import "time"

// schedule computes when responses are due. Times are nanoseconds since the server's start. Late timers do not add up: a worker
// takes the next request when the previous response was due, not when it left.
type schedule struct {
	// free is the time at which each worker can start another request.
	free    []int64
	service int64
	// uneven assigns connections to four workers in the ratio 4:3:2:1. Otherwise the first free worker takes a request.
	uneven bool
	// A stall stops all workers: after every stallAfter requests (one worker only), or at the end of each period stallEach.
	stall      int64
	stallAfter int64
	stallEach  int64
	served     int64
	// Token bucket: each response takes a token. A token arrives every `interval`, and the bucket holds up to `burst`.
	interval int64
	burst    int64
	full     int64
	// One in every tailEach responses is later by tail.
	tail     int64
	tailEach int64
	// then is a delay after the service, without a worker.
	then int64
}

// unevenWorkers maps the last digit of a connection's number to a worker.
var unevenWorkers = [10]int{0, 0, 0, 0, 1, 1, 1, 2, 2, 3}

// due returns the due time of the response to a request that arrived at now. Calls must be in order of now.
func (s *schedule) due(now int64, connection int) int64 {
	worker := s.worker(connection)
	done := s.finish(max(now, s.free[worker]))
	s.served++
	s.free[worker] = done
	if s.stallAfter > 0 && s.served%s.stallAfter == 0 {
		s.free[worker] += s.stall
	}
	due := s.token(done) + s.then
	if s.tail > 0 && s.served%s.tailEach == 0 {
		due += s.tail
	}
	return due
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

// finish returns the end of a request that a worker begins at start, including a stall.
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

// token returns the time at which a finished response gets a token. `full` is the time at which the bucket would be full again
// without further requests.
func (s *schedule) token(done int64) int64 {
	if s.interval == 0 {
		return done
	}
	taken := max(done, s.full-(s.burst-1)*s.interval)
	s.full = max(s.full, taken) + s.interval
	return taken
}

// empty reports whether the schedule delays no request.
func (s *schedule) empty() bool {
	return s.service == 0 && s.then == 0 && s.interval == 0 && s.tail == 0
}

func newSchedule(workers int, service time.Duration) schedule {
	return schedule{free: make([]int64, workers), service: int64(service)}
}
