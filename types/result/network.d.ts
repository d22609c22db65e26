// Made of lib/result/network.ts by `npm run types`.
import type { NetworkSpec } from '../scenario/model.ts';
/** TCP segments by what they carry: `data` with a payload and no FIN, `dataFin` with both, `fin` without a payload, `ack` with neither. */
export type PacketKind = 'syn' | 'synAck' | 'ack' | 'data' | 'dataFin' | 'fin' | 'reset' | 'other';
/** What went over the link in one direction. packets = delivered + dropped + lost, but for those on their way at a window's ends. */
export interface LinkTraffic {
    /** As they came to the link, by kind and in all. */
    packets: number;
    kinds: Record<PacketKind, number>;
    bytes: number;
    delivered: number;
    /** By the limit of the queue. */
    dropped: number;
    /** By the share of loss that was asked for. */
    lost: number;
    /** How much later than they were due packets left the link, of those that were delivered. */
    latenessMs: {
        p50: number;
        p99: number;
        max: number;
    };
}
/**
 * What the run's own network did within a load phase's window. Where requests are counted, from the first packet until those of
 * the last request had arrived.
 */
export interface NetworkUse {
    toServer: LinkTraffic;
    toClient: LinkTraffic;
    /** TCP segments sent again (RetransSegs), by side. */
    retransmits: {
        client: number;
        server: number;
    };
    /** Connections that the server's full accept queue turned away (ListenOverflows). */
    listenOverflows: number;
    /** CPU seconds of the link: of each direction's thread, which runs on the cores of the side that its packets go to. */
    linkCpuSeconds: {
        toServer: number;
        toClient: number;
    };
}
/** A variant's network over all rounds. */
export interface NetworkResult {
    /** As asked for. */
    spec: NetworkSpec;
    /** Medians over the rounds, per response of the window in which packets were counted; 0 without any. */
    packetsPerRequest: {
        toServer: number;
        toClient: number;
    };
    /** Packets dropped by the queues' limit, per packet, 0 to 1; median over the rounds. */
    droppedShare: {
        toServer: number;
        toClient: number;
    };
    /** How late packets left the link, the later one of the two directions; medians over the rounds. */
    latenessMs: {
        p50: number;
        p99: number;
    };
    /** Of both sides, per request as above; median over the rounds. */
    retransmitsPerRequest: number;
    /** Median over the rounds. */
    listenOverflows: number;
    /** The share of its cores that the server left unused, 0 to 1; median over the rounds. */
    serverIdleShare: number;
    /** Whether the delay was what was asked for: whether each direction's p99 of lateness, the median over the rounds, is at most 2 % of it. */
    delayHeld: boolean;
}
/** A kernel setting that was asked for in a namespace of the run's. */
export interface KernelSetting {
    side: 'server' | 'client';
    /** e.g. net.core.somaxconn */
    name: string;
    /** As asked for. */
    value: string;
    /** Why it does not hold: this kernel does not have it, or does not allow it in a namespace. Absent where it holds. */
    problem?: string;
    /** Variants that ask for it. */
    variants: string[];
}
