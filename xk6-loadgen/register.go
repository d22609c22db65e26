// Package loadgen is the k6 module k6/x/loadgen: a script calls run once for a whole load phase, the engine makes the
// requests, and k6 gets one set of samples a second.
package loadgen

import "go.k6.io/k6/v2/js/modules"

func init() { modules.Register("k6/x/loadgen", new(rootModule)) }
