package main

import (
	"testing"
	"time"
)

func TestAJobHasItsShareOfACoreBesideTheRequests(t *testing.T) {
	began := time.Now()
	j := startJob(5*time.Millisecond, 20*time.Millisecond)
	// Go may give it a thread that was used before.
	first := j.used()
	for j.used()-first < int64(48*time.Millisecond) {
		time.Sleep(time.Millisecond)
	}
	// The tenth period begins after nine of them.
	if took := time.Since(began); took < 180*time.Millisecond {
		t.Errorf("ten periods took %v", took)
	}
	w := work{job: j}
	w.begin()
	before, jobBefore := processCPU(), j.used()
	w.spend(int64(50 * time.Millisecond))
	requests := processCPU() - before - (j.used() - jobBefore)
	if off := time.Duration(requests) - 50*time.Millisecond; off.Abs() > 2*time.Millisecond {
		t.Errorf("the requests used %v more than asked for", off)
	}
}
