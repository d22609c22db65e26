package h3

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

func TestAnInboxNotifiesOnceForEachTake(t *testing.T) {
	notices := 0
	inbox := &Inbox[int]{Now: func() int64 { return 0 }, Notify: func() { notices++ }}
	for round := range 3 {
		for last := range 3 {
			inbox.post(Event[int]{Kind: GoAway, Last: quic.StreamID(last)})
		}
		if notices != round+1 {
			t.Errorf("round %d: %d notices", round, notices)
		}
		events := inbox.Take()
		for last := range 3 {
			if len(events) != 3 || events[last].Last != quic.StreamID(last) {
				t.Fatalf("round %d: %+v", round, events)
			}
		}
	}
	if events := inbox.Take(); len(events) != 0 {
		t.Errorf("%d events were taken twice", len(events))
	}
}

func TestAConnectionHasTheRoomOfTheOneBefore(t *testing.T) {
	socket, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9})
	if err != nil {
		t.Fatal(err)
	}
	inbox := &Inbox[int]{Now: func() int64 { return 0 }, Notify: func() {}, Timeout: time.Second, TLS: &tls.Config{InsecureSkipVerify: true}}
	conn, hangUp := Dial(inbox, &Conn[int]{Open: make([]*Stream[int], 0, 5)}, 7, socket, socket.RemoteAddr())
	hangUp()
	inbox.Goroutines.Wait()
	if len(conn.Open) != 0 || cap(conn.Open) != 5 {
		t.Errorf("%d streams, with room for %d", len(conn.Open), cap(conn.Open))
	}
}
