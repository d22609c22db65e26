//gosec:disable G115 -- the numbers are small
package engine

import (
	"math"
	"slices"
	"syscall"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/histogram"
)

// ErrorKind is the step at which an attempt ended without a response.
type ErrorKind int

// Kinds of error. Texts are examples (Result.ErrorExample), never keys.
const (
	ErrConnect ErrorKind = iota
	ErrTLS
	ErrRead
	ErrWrite
	ErrTimeout
	ErrProtocol
	errorKinds
)

var ErrorKindNames = [errorKinds]string{"connect", "tls", "read", "write", "timeout", "protocol"}

// ErrorCause is the reason for which an attempt ended without a response.
type ErrorCause int

const (
	CauseOther               ErrorCause = iota
	CauseAddressNotAvailable            // no local port was free
	CauseRefused
	CauseReset    // the peer reset the connection, or the HTTP/2 stream
	CauseTimedOut // the engine's timeout, or the kernel's
	CauseShort    // the connection was closed before the response was complete
	errorCauses
)

var ErrorCauseNames = [errorCauses]string{"other", "addressNotAvailable", "refused", "reset", "timedOut", "short"}

// causes are the causes of errnos that servers and networks bring about. Others are CauseOther.
var causes = map[syscall.Errno]ErrorCause{
	syscall.EADDRNOTAVAIL: CauseAddressNotAvailable, syscall.ECONNREFUSED: CauseRefused, syscall.ECONNRESET: CauseReset,
	syscall.EPIPE: CauseReset, syscall.ETIMEDOUT: CauseTimedOut,
}

const statusClasses = 4

var StatusClassNames = [statusClasses]string{"2xx", "3xx", "4xx", "5xx"}

// Counts are the counts of a stretch of time. Requests = Responses + Errors, and Errors = Causes.
type Counts struct {
	Requests  int64
	Responses [statusClasses]int64
	Statuses  [300]int64 // Statuses counts each status from 300 on
	// Unexpected responses have another status than their request's; where it names none, 4xx and 5xx.
	Unexpected int64
	Errors     [errorKinds]int64
	Causes     [errorCauses]int64
	// BodyBytes are those of responses by their class of status, without framing or padding.
	BodyBytes [statusClasses]int64
	// OtherBodies are far from the side's first one of their class in length, see isFar. Bodies of a mix are not counted.
	OtherBodies int64
	// HeaderBytes are as received, HeadersDecodedBytes without HTTP/2's compression.
	// ReceivedBytes and SentBytes are all bytes, with TLS those inside its records, with HTTP/3 those of the requests' streams.
	HeaderBytes, HeadersDecodedBytes, ReceivedBytes, SentBytes int64
}

func (c *Counts) add(other *Counts) {
	c.Requests += other.Requests
	addEach(c.Responses[:], other.Responses[:])
	addEach(c.Statuses[:], other.Statuses[:])
	c.Unexpected += other.Unexpected
	addEach(c.Errors[:], other.Errors[:])
	addEach(c.Causes[:], other.Causes[:])
	c.HeaderBytes += other.HeaderBytes
	c.HeadersDecodedBytes += other.HeadersDecodedBytes
	addEach(c.BodyBytes[:], other.BodyBytes[:])
	c.OtherBodies += other.OtherBodies
	c.ReceivedBytes += other.ReceivedBytes
	c.SentBytes += other.SentBytes
}

// Wire is what all connections of a load had on the wire, warm-up and edges of turns included, each as of its close. Bytes are with
// the headers of IP and TCP or UDP. Resent segments are in SegmentsOut too, and Resumed handshakes in Handshakes. Packets of
// QUIC are its segments, each of them counted as one with data; of TCP's, a mere ACK is not. Connections and handshakes are exact;
// beyond readEach connections of a thread the rest is that of every readOneIn-th.
type Wire struct {
	Connections, Handshakes, Resumed, SegmentsOut, SegmentsIn, DataSegmentsIn, Resent, BytesOut, BytesIn int64
}

func (w *Wire) add(other *Wire) {
	w.Connections += other.Connections
	w.Handshakes += other.Handshakes
	w.Resumed += other.Resumed
	w.SegmentsOut += other.SegmentsOut
	w.SegmentsIn += other.SegmentsIn
	w.DataSegmentsIn += other.DataSegmentsIn
	w.Resent += other.Resent
	w.BytesOut += other.BytesOut
	w.BytesIn += other.BytesIn
}

func addEach(to, counts []int64) {
	for i, n := range counts {
		to[i] += n
	}
}

func (c *Counts) ErrorTotal() (total int64) {
	for _, n := range c.Errors {
		total += n
	}
	return total
}

// BodyTotal is the number of bytes of all bodies.
func (c *Counts) BodyTotal() (total int64) {
	for _, n := range c.BodyBytes {
		total += n
	}
	return total
}

// ResponseTotal counts the responses of any status.
func (c *Counts) ResponseTotal() int64 { return c.Requests - c.ErrorTotal() }

// longest is the greatest duration of a histogram; longer ones are recorded as this.
const longest = int64(time.Hour)

// recorder collects durations in nanoseconds: percentiles in a histogram of 3 digits, mean and standard deviation in exact sums.
type recorder struct {
	histogram *histogram.Histogram
	count     int64
	min, max  int64
	// sum and squares are of the deviation from the first value, so that no digits are lost.
	first        int64
	sum, squares float64
}

// newRecorder allocates about 260 KB, so loops make their recorders before the load and reset them.
func newRecorder() *recorder { return &recorder{histogram: histogram.New(longest, 3)} }

func (r *recorder) record(nanoseconds int64) { r.recordMany(nanoseconds, 1) }

// recordMany records a duration `count` times; less than 0 as 0, more than an hour as an hour.
func (r *recorder) recordMany(nanoseconds, count int64) {
	v := min(max(nanoseconds, 0), longest)
	if r.count == 0 {
		r.min, r.max, r.first = v, v, v
	} else if v < r.min {
		r.min = v
	} else if v > r.max {
		r.max = v
	}
	r.count += count
	d, n := float64(v-r.first), float64(count)
	r.sum += n * d
	r.squares += n * d * d
	r.histogram.Record(v, count)
}

// total is the sum of all durations, in nanoseconds.
func (r *recorder) total() int64 { return int64(r.sum) + r.first*r.count }

// ageOf is the mean length, in nanoseconds, of the requests that are under way at any time: Σx²/Σx, since long ones are longer under
// way. Times count up to `most`: a pause of the machine must not make all turns long.
func (r *recorder) ageOf(most int64) int64 {
	sum, squares := 0.0, 0.0
	for class := range r.histogram.All {
		x, n := float64(min(class.To, most)), float64(class.Count)
		sum += n * x
		squares += n * x * x
	}
	if sum == 0 {
		return 0
	}
	return int64(squares / sum)
}

func (r *recorder) reset() {
	if r != nil {
		r.histogram.Reset()
		*r = recorder{histogram: r.histogram}
	}
}

// merge adds another recorder's values. The histograms add up exactly, the sums but for rounding.
func (r *recorder) merge(other *recorder) {
	if other == nil || other.count == 0 {
		return
	}
	if r.count == 0 {
		r.min, r.max, r.first = other.min, other.max, other.first
	}
	r.min, r.max = min(r.min, other.min), max(r.max, other.max)
	// Move other's sums to this recorder's origin: Σ(d+s) and Σ(d+s)².
	shift, n := float64(other.first-r.first), float64(other.count)
	r.squares += other.squares + 2*shift*other.sum + n*shift*shift
	r.sum += other.sum + n*shift
	r.count += other.count
	r.histogram.Merge(other.histogram)
}

// Distribution is zero without values. SD is of a sample (n−1), WithinSD the share of values at most one SD from the mean.
type Distribution struct {
	Min, Mean, SD, WithinSD, Max float64
}

// LatencyDistribution is a Distribution of milliseconds with percentiles.
type LatencyDistribution struct {
	Distribution
	P50, P75, P90, P95, P99, P999 float64
	Histogram                     []Bar // Histogram, ascending, is the source of the percentiles.
}

// Bar of a histogram: Count values were at most Value milliseconds, and more than the bar before.
type Bar struct {
	Value float64
	Count int64
}

func inMs(nanoseconds int64) float64 { return float64(nanoseconds) / 1e6 }

// distribution bounds percentiles by the greatest value, which may be below its class's upper end.
func (r *recorder) distribution() (d LatencyDistribution) {
	if r == nil || r.count == 0 {
		return d
	}
	n := float64(r.count)
	mean, sd := float64(r.first)+r.sum/n, 0.0
	if r.count > 1 {
		sd = math.Sqrt(max(0, r.squares-r.sum*r.sum/n) / (n - 1))
	}
	d.Min, d.Mean, d.SD, d.Max = inMs(r.min), mean/1e6, sd/1e6, inMs(r.max)
	at := r.histogram.Percentiles(50, 75, 90, 95, 99, 99.9)
	for i, percentile := range []*float64{&d.P50, &d.P75, &d.P90, &d.P95, &d.P99, &d.P999} {
		*percentile = inMs(min(max(at[i], r.min), r.max))
	}
	within := int64(0)
	for class := range r.histogram.All {
		d.Histogram = append(d.Histogram, Bar{inMs(class.To), class.Count})
		if float64(class.To) >= mean-sd && float64(class.From) <= mean+sd {
			within += class.Count
		}
	}
	d.WithinSD = float64(within) / n
	return d
}

// describe sums up a few values, such as requests/s by connection. It needs no histogram.
func describe(values []float64) Distribution {
	if len(values) == 0 {
		return Distribution{}
	}
	d := Distribution{Min: slices.Min(values), Mean: mean(values), Max: slices.Max(values)}
	n, squares, within := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		squares += (v - d.Mean) * (v - d.Mean)
	}
	d.SD = math.Sqrt(squares / max(1, n-1))
	for _, v := range values {
		if math.Abs(v-d.Mean) <= d.SD {
			within++
		}
	}
	d.WithinSD = within / n
	return d
}

// bucketOf is the index of a duration's bucket, as vegeta counts: from ≤ latency < to.
func bucketOf(ends []time.Duration, nanoseconds int64) int {
	place, _ := slices.BinarySearch(ends, time.Duration(nanoseconds)+1)
	return place
}

// LatencyBucket counts the responses with From ≤ latency < To; To 0 is without end.
type LatencyBucket struct {
	From, To time.Duration
	Count    int64
}

// latencyBuckets pairs the counts with their bounds. There is one more count than ends.
func latencyBuckets(ends []time.Duration, counts []int64) (buckets []LatencyBucket) {
	if len(ends) == 0 {
		return nil
	}
	from := time.Duration(0)
	for i, to := range slices.Concat(ends, []time.Duration{0}) {
		buckets = append(buckets, LatencyBucket{From: from, To: to, Count: counts[i]})
		from = to
	}
	return buckets
}

// bucketEnds, in nanoseconds, are ten per decade from 1 µs: fine enough for a heatmap. The last one has no end.
var bucketEnds = func() (ends []int64) {
	for end := int64(0); end < longest; ends = append(ends, end) {
		end = int64(math.Round(1e3 * math.Pow(10, float64(len(ends))/10)))
	}
	return ends
}()

// Bucket of a heatmap: Count responses took at most End, and longer than the bucket before.
type Bucket struct {
	End   time.Duration
	Count int64
}

// buckets joins the histogram's classes to bucketEnds. Empty buckets are left out.
func (r *recorder) buckets() (buckets []Bucket) {
	next := 0
	for class := range r.histogram.All {
		for class.From > bucketEnds[next] {
			next++
		}
		end := time.Duration(bucketEnds[next])
		if last := len(buckets) - 1; last < 0 || buckets[last].End != end {
			buckets = append(buckets, Bucket{End: end})
		}
		buckets[len(buckets)-1].Count += class.Count
	}
	return buckets
}
