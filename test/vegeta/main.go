// Sends the requests of a bakeoff replay file at their times with vegeta: main URL FILE prints p50 and p99 in milliseconds.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"slices"
	"sync/atomic"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

type due struct {
	at  time.Duration
	url string
}

type pacer []due

func (p pacer) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	if hits >= uint64(len(p)) {
		return 0, true
	}
	return max(0, p[hits].at-elapsed), false
}

func (p pacer) Rate(time.Duration) float64 { return float64(len(p)) / p[len(p)-1].at.Seconds() }

func read(name, url string) (all pacer) {
	file, err := os.Open(name)
	if err != nil {
		log.Fatal(err)
	}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var request struct {
			Target string
			AtMs   []float64
		}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			log.Fatal(err)
		}
		for _, ms := range request.AtMs {
			all = append(all, due{time.Duration(ms * 1e6), url + request.Target})
		}
	}
	slices.SortFunc(all, func(a, b due) int { return cmp.Compare(a.at, b.at) })
	return all
}

func main() {
	log.SetFlags(0)
	all, next := read(os.Args[2], os.Args[1]), atomic.Int64{}
	target := func(t *vegeta.Target) error {
		t.Method, t.URL = "GET", all[next.Add(1)-1].url
		return nil
	}
	var metrics vegeta.Metrics
	for result := range vegeta.NewAttacker().Attack(target, all, 0, "") {
		metrics.Add(result)
	}
	metrics.Close()
	if metrics.Success != 1 || metrics.Requests != uint64(len(all)) {
		log.Fatalf("%d of %d requests, success %g: %v", metrics.Requests, len(all), metrics.Success, metrics.Errors)
	}
	fmt.Println(metrics.Latencies.P50.Seconds()*1000, metrics.Latencies.P99.Seconds()*1000)
}
