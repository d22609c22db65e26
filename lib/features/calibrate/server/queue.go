package main

// waiting is a response that is due later.
type waiting struct {
	due int64
	to  *connection
}

// queue is a heap, ordered by due time.
type queue []waiting

func (q *queue) push(response waiting) {
	*q = append(*q, response)
	all := *q
	for at := len(all) - 1; at > 0; {
		above := (at - 1) / 2
		if all[above].due <= all[at].due {
			return
		}
		all[above], all[at] = all[at], all[above]
		at = above
	}
}

func (q *queue) pop() *connection {
	all := *q
	first := all[0].to
	last := len(all) - 1
	all[0] = all[last]
	all = all[:last]
	*q = all
	for at := 0; ; {
		least := at
		for below := 2*at + 1; below <= 2*at+2 && below < last; below++ {
			if all[below].due < all[least].due {
				least = below
			}
		}
		if least == at {
			return first
		}
		all[at], all[least] = all[least], all[at]
		at = least
	}
}
