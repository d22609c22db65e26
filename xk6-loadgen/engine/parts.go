package engine

import "math/rand/v2"

const (
	// partsOfAll responses of a loop's second have their parts recorded; of more of them one in partsOneIn in the mean, which then counts
	// as many times: k6 gets 100 values of a second.
	partsOfAll = 1000
	partsOneIn = 16
)

// parts are the times of responses up to their first byte and from it on: 0 where one read brought the whole response.
type parts struct {
	waiting, receiving *recorder
	skip               int // responses until the next one that is recorded
}

// newParts returns nil unless they are asked for. The latency of files that are requested together is of no single response.
func newParts(p *plan) *parts {
	if !p.Parts || p.Together {
		return nil
	}
	return &parts{waiting: newRecorder(), receiving: newRecorder()}
}

func (p *parts) record(from, firstAt, end int64) {
	if p.skip > 0 {
		p.skip--
		return
	}
	times := int64(1)
	if p.waiting.count >= partsOfAll {
		times, p.skip = partsOneIn, rand.IntN(2*partsOneIn-1) //nolint:gosec // no secret
	}
	p.waiting.recordMany(firstAt-from, times)
	p.receiving.recordMany(end-firstAt, times)
}

func (p *parts) merge(other *parts) {
	if p != nil {
		p.waiting.merge(other.waiting)
		p.receiving.merge(other.receiving)
	}
}

func (p *parts) reset() {
	if p != nil {
		p.waiting.reset()
		p.receiving.reset()
		p.skip = 0
	}
}

func (p *parts) distributions() (waiting, receiving LatencyDistribution) {
	if p == nil {
		return waiting, receiving
	}
	return p.waiting.distribution(), p.receiving.distribution()
}
