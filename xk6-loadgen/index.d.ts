// Types of k6/x/loadgen for an editor: they are in the npm package server-bakeoff.
/// <reference types="server-bakeoff/loadgen" />
