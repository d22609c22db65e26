package engine

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

func (p *h2peer) readSettings(f *http2.SettingsFrame) {
	if f.IsAck() {
		if len(p.ours) == 0 {
			p.wrong("an acknowledgement of no SETTINGS")
		}
		p.acknowledged(p.ours[0])
		p.ours = p.ours[1:]
		p.acked++
		return
	}
	if p.theirs == nil {
		p.theirs = map[http2.SettingID]uint32{}
	}
	f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			p.wrong("%v: %v", s, err)
		}
		p.theirs[s.ID] = s.Val
		switch s.ID {
		case http2.SettingInitialWindowSize:
			for _, r := range p.streams {
				r.window += int64(s.Val) - p.theirInitial
			}
			p.theirInitial = int64(s.Val)
		case http2.SettingHeaderTableSize:
			p.encoder.SetMaxDynamicTableSizeLimit(s.Val)
		}
		return nil
	})
	if p.owed++; p.greeted {
		p.owed--
		p.WriteSettingsAck()
	}
}

func (p *h2peer) acknowledged(settings []http2.Setting) {
	if p.acked == 0 {
		p.limit = never
	}
	for _, s := range settings {
		switch s.ID {
		case http2.SettingMaxConcurrentStreams:
			p.limit = int64(s.Val)
		case http2.SettingInitialWindowSize:
			for _, r := range p.streams {
				r.receive += int64(s.Val) - p.initial
			}
			p.initial = int64(s.Val)
		case http2.SettingMaxFrameSize:
			p.SetMaxReadFrameSize(s.Val)
		case http2.SettingHeaderTableSize:
			p.mustShrink = p.mustShrink || s.Val < p.clientTable
			p.decoder.SetAllowedMaxDynamicTableSize(s.Val)
		}
	}
}

func (p *h2peer) readHeaders(f *http2.HeadersFrame) {
	if f.StreamID%2 == 0 || f.StreamID <= p.lastID {
		p.wrong("HEADERS on stream %d after stream %d", f.StreamID, p.lastID)
	}
	p.lastID = f.StreamID
	block := slices.Clone(f.HeaderBlockFragment())
	for ended := f.HeadersEnded(); !ended; {
		frame, err := p.ReadFrame()
		if err != nil {
			p.wrong("a header block without its end: %v", err)
		}
		continuation := frame.(*http2.ContinuationFrame)
		block = append(block, continuation.HeaderBlockFragment()...)
		ended = continuation.HeadersEnded()
	}
	resized := p.readTableSizes(block)
	if p.mustShrink && !resized {
		p.wrong("no table size update after HEADER_TABLE_SIZE became smaller: block %x", block)
	}
	p.mustShrink = false
	fields, err := p.decoder.DecodeFull(block)
	if err != nil {
		p.wrong("a bad header block %x: %v", block, err)
	}
	r := &h2stream{id: f.StreamID, fields: fields, block: len(block), window: p.theirInitial, receive: p.initial}
	p.checkFields(fields)
	if p.streams[r.id] = r; int64(len(p.streams)) > p.limit {
		p.wrong("a stream more than the %d that may be open", p.limit)
	}
	for open := int64(len(p.streams)); ; {
		most := p.server.mostOpen.Load()
		if open <= most || p.server.mostOpen.CompareAndSwap(most, open) {
			break
		}
	}
	p.server.requests.Add(1)
	if f.StreamEnded() {
		p.ended(r)
	}
}

// readTableSizes notes the table size updates at a block's start (RFC 7541, section 6.3), and whether there were any.
func (p *h2peer) readTableSizes(block []byte) (any bool) {
	for ; len(block) > 0 && block[0]&0xe0 == 0x20; any = true {
		size, rest := uint32(block[0]&0x1f), block[1:]
		for shift := 0; size >= 0x1f && len(rest) > 0; shift += 7 {
			c := rest[0]
			rest = rest[1:]
			if size += uint32(c&0x7f) << shift; c < 0x80 {
				break
			}
		}
		p.clientTable, block = size, rest
	}
	return any
}

// checkFields holds a request's fields against RFC 9113, section 8.
func (p *h2peer) checkFields(fields []hpack.HeaderField) {
	pseudo, regular := map[string]string{}, false
	for _, f := range fields {
		switch {
		case strings.HasPrefix(f.Name, ":"):
			if _, twice := pseudo[f.Name]; twice || regular {
				p.wrong("%s twice or after other fields", f.Name)
			}
			pseudo[f.Name] = f.Value
		case f.Name != strings.ToLower(f.Name), f.Name == "",
			slices.Contains([]string{"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "host"}, f.Name),
			f.Name == "te" && f.Value != "trailers":
			p.wrong("the field %q: %q", f.Name, f.Value)
		default:
			regular = true
		}
	}
	scheme := "http"
	if _, plain := p.conn.(*net.TCPConn); !plain {
		scheme = "https"
	}
	if pseudo[":scheme"] != scheme || pseudo[":method"] == "" || pseudo[":authority"] == "" || !strings.HasPrefix(pseudo[":path"], "/") || len(pseudo) != 4 {
		p.wrong("the pseudo-header fields %v", pseudo)
	}
}

func (p *h2peer) readData(f *http2.DataFrame) {
	length := int64(f.Length)
	if f.StreamID > p.lastID {
		p.wrong("DATA on idle stream %d", f.StreamID)
	}
	if p.receive -= length; p.receive < 0 {
		p.wrong("%d bytes more than the connection's window", -p.receive)
	}
	if r := p.streams[f.StreamID]; r != nil {
		if r.ended {
			p.wrong("DATA after END_STREAM on stream %d", r.id)
		}
		if r.receive -= length; r.receive < 0 {
			p.wrong("%d bytes more than the window of stream %d", -r.receive, r.id)
		}
		r.body = append(r.body, f.Data()...)
		if f.StreamEnded() {
			p.ended(r)
		} else if p.refill && length > 0 {
			p.give(r, length)
		}
	}
	if p.refill && length > 0 {
		p.give(nil, length)
	}
}

func (p *h2peer) give(r *h2stream, n int64) {
	id := uint32(0)
	if r != nil {
		id = r.id
		r.receive += n
	} else {
		p.receive += n
	}
	p.WriteWindowUpdate(id, uint32(n))
}

func (p *h2peer) ended(r *h2stream) {
	r.ended = true
	if length := r.value("content-length"); length != "" && length != strconv.Itoa(len(r.body)) {
		p.wrong("content-length %s and %d bytes", length, len(r.body))
	}
	p.ready = append(p.ready, r)
}

func (p *h2peer) rst(r *h2stream, code http2.ErrCode) {
	p.WriteRSTStream(r.id, code)
	delete(p.streams, r.id)
}

func isFault(err error) bool {
	return errors.As(err, new(http2.ConnectionError)) || errors.As(err, new(http2.StreamError)) || errors.Is(err, http2.ErrFrameTooLarge)
}
