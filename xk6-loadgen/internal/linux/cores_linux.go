package linux

import "golang.org/x/sys/unix"

// Cores are those that the calling thread may run on, by their numbers; nil where the kernel does not say.
func Cores() (allowed []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	for core, left := 0, set.Count(); left > 0; core++ {
		if set.IsSet(core) {
			allowed = append(allowed, core)
			left--
		}
	}
	return allowed
}

// UseCores has the calling thread run on these cores only; none: where it may already. What cannot be had is left to the
// kernel.
func UseCores(cores []int) {
	if len(cores) == 0 {
		return
	}
	var set unix.CPUSet
	for _, core := range cores {
		set.Set(core)
	}
	unix.SchedSetaffinity(0, &set) //nolint:errcheck // without it all is right, only slower
}
