// Command k6 is k6 with the module k6/x/loadgen built in.
package main

import (
	"go.k6.io/k6/v2/cmd"

	_ "bakeoff.invalid/OWNER/bakeoff/xk6-loadgen"
)

func main() { cmd.Execute() }
