package link

import (
	"bytes"
	"math/rand/v2"
	"syscall"
	"testing"
)

func (q *queue) free() { syscall.Munmap(q.memory) }

func testQueue(t testing.TB) *queue {
	t.Helper()
	q, err := newQueue()
	must(t, err)
	t.Cleanup(q.free)
	return q
}

func TestQueueAgainstAList(t *testing.T) {
	type packet struct {
		due, waited int64
		bytes       []byte
	}
	random := rand.New(rand.NewPCG(3, 4))
	q := testQueue(t)
	var list []packet
	// The share of pushes wanders, so that it is empty, fills over many chunks, and empties again.
	for step := range 300_000 {
		filling := step/20_000%2 == 0
		if random.IntN(10) < 3 != filling {
			p := packet{due: int64(step), waited: random.Int64N(1000), bytes: make([]byte, 1+random.IntN(mtu))}
			for i := range p.bytes {
				p.bytes[i] = byte(step + i)
			}
			room := q.room()
			if len(room) != mtu {
				t.Fatalf("room for %d bytes", len(room))
			}
			copy(room, p.bytes)
			q.push(p.due, p.waited, len(p.bytes))
			list = append(list, p)
		} else if e, got := q.head(); len(list) == 0 {
			if e != nil {
				t.Fatal("something came out of an empty queue")
			}
		} else {
			want := list[0]
			list = list[1:]
			if e == nil || e.due != want.due || e.waited != want.waited || !bytes.Equal(got, want.bytes) {
				t.Fatalf("at step %d another packet came out", step)
			}
			q.pop()
		}
		if q.waiting != int64(len(list)) {
			t.Fatalf("%d wait, want %d", q.waiting, len(list))
		}
	}
	if q.fresh < 10 {
		t.Errorf("only %d chunks were used: the test is of no use", q.fresh)
	}
}

func TestFullQueue(t *testing.T) {
	q := testQueue(t)
	fill := func() (n int64) {
		for q.room() != nil {
			q.push(n, 0, mtu)
			n++
		}
		return n
	}
	perChunk := int64(chunkBytes) / int64(footprint(mtu))
	if n := fill(); n != chunks*perChunk {
		t.Fatalf("%d packets fit, want %d", n, chunks*perChunk)
	}
	for range perChunk {
		q.pop()
	}
	if n := fill(); n != perChunk {
		t.Errorf("%d packets fit where %d were taken away", n, perChunk)
	}
	for q.waiting > 0 {
		q.pop()
	}
	if n := fill(); n != chunks*perChunk {
		t.Errorf("%d packets fit when it was empty again, want %d", n, chunks*perChunk)
	}
}

func TestQueueStaysSmall(t *testing.T) {
	q := testQueue(t)
	for range 1000 {
		q.room()
		q.push(0, 0, 100)
	}
	for range 1_000_000 {
		q.room()
		q.push(0, 0, 100)
		q.pop()
	}
	need := 1000*int(footprint(100))/chunkBytes + 1
	if int(q.fresh) > need+2 {
		t.Errorf("%d chunks were used where %d are enough", q.fresh, need)
	}
}
