#!/bin/sh
# Node in a network of its own, which has loopback alone. Without the rights for one (or with BAKEOFF_TEST_NETWORK=machine) in the
# machine's: there, whole runs fail beside another run.
if [ "$BAKEOFF_TEST_NETWORK" != machine ] && unshare --net true 2>/dev/null; then
  exec unshare --net sh -c 'ip link set lo up && exec node "$@"' sh "$@"
fi
exec node "$@"
