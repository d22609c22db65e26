package engine

// coresOf are the cores of one of so many loops: each has its own of those that are allowed, so that no two share one while
// another is idle. Where there are as many loops as cores that is one for each; where there are fewer the kernel still chooses,
// since other work may be bound to a core. With too few for that, nil leaves all to the kernel.
//
// They are dealt out in turn: where a core's second hardware thread is numbered half of all higher, as on most machines, a
// loop has both.
func coresOf(allowed []int, loops, number int) []int {
	if loops == 1 || len(allowed) < loops {
		return nil
	}
	var own []int
	for i := number; i < len(allowed); i += loops {
		own = append(own, allowed[i])
	}
	return own
}
