//gosec:disable G115 -- the numbers are small
package h2

// Stream is a stream that is open. The exported fields are for the caller to read.
type Stream[T any] struct {
	Of     T // the caller's own
	ID     uint32
	Status int32 // Status is of the final response; 0: its headers have not come in.
	// HeaderBytes are as received, DecodedBytes those of names and values. BodyBytes are without padding. Length is the content-length, -1: none.
	HeaderBytes, DecodedBytes int64
	BodyBytes, Length         int64

	flow   int64  // what came in since the last update of the stream's window
	unsent []byte // the rest of the request's body, and the server's window for it
	window int64
}

// ring has the open streams by identifier. Its length is a power of two. ID 0: the place is free.
type ring[T any] []Stream[T]

// place is where a stream's identifier belongs in the ring. A client's identifiers are odd (RFC 9113, section 5.1.1).
func (r ring[T]) place(id uint32) *Stream[T] { return &r[int(id>>1)&(len(r)-1)] }

// find is the open stream with this identifier, valid until the next grow; nil if it has ended.
func (r ring[T]) find(id uint32) *Stream[T] {
	if len(r) == 0 {
		return nil
	}
	if st := r.place(id); st.ID == id && id != 0 {
		return st
	}
	return nil
}

// grow doubles the ring. It allocates, which ends once a connection has had all of its streams open.
func (r *ring[T]) grow() {
	old := *r
	*r = make(ring[T], max(1, 2*len(old)))
	for i := range old {
		if old[i].ID != 0 {
			*r.place(old[i].ID) = old[i]
		}
	}
}
