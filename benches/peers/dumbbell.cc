// A dumbbell for ns-3: N greedy TCP flows over one bottleneck, tuned for speed, one JSON line on stdout.
//
//   dumbbell --flows=10 --rate=100e6 --rttMin=50 --rttMax=50 --queue=CoDel --limit=0 --tcp=NewReno ...
//
// Built against Debian's libns3-dev (3.37) with the flags pkg-config gives. Tuned means: routes are an array indexed by
// the destination's subnet (global routing costs up to 8 times at 1000 flows), queue discs and flow control only
// where the bottleneck needs them, one pair of hosts per flow (ns-3 looks a socket up by a linear search), the heap
// scheduler, no trace source connected unless --monitor=1 asks for it.
//
//   source --access--> L --bottleneck, 10 ms--> R --access, 1 ms--> sink        RTT = 2 * (left + 10 ms + 1 ms)
//
// --queue=dev is the device's own drop-tail queue of --limit packets without a queue disc (the limit does not count the
// packet on the wire). Every other queue is a queue disc above a device queue of one packet, as ns-3 builds it.
// Timestamps are off, so a segment of 1460 bytes is an IP packet of 1500; PPP adds 2 bytes on the wire.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <time.h>
#include <unordered_map>
#include <vector>

using namespace ns3;

namespace
{

struct Options
{
    uint32_t flows = 10;
    double rate = 100e6;
    double access = 1e9;
    double rttMin = 50;
    double rttMax = 50;
    std::string queue = "dev";
    uint32_t limit = 100;
    std::string tcp = "NewReno";
    uint32_t delack = 2;
    uint32_t initialWindow = 10;
    double minRto = 1;
    bool sack = true;
    std::string recovery = "Prr";
    bool ecn = false;
    uint32_t meanPacket = 1500;
    double target = 0;
    uint32_t buffer = 4194304;
    double duration = 60;
    double warmup = 10;
    double startSpread = 1;
    uint32_t seed = 1;
    bool monitor = false;
    std::string traceCwnd;
    std::string traceQueue;
};

const double kBottleneckDelayMs = 10;
const double kRightDelayMs = 1;

double
CpuSeconds()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

double
PeakRssMb()
{
    // Not getrusage's: that of a process begins with the peak of whoever started it.
    std::ifstream status("/proc/self/status");
    std::string word;
    while (status >> word)
    {
        double kilobytes;
        if (word == "VmHWM:" && status >> kilobytes)
        {
            return kilobytes * 1024e-6;
        }
    }
    return 0;
}

// Host i (a source or a sink) lives in subnet `side`.i, side being 10 for sources and 11 for sinks.
uint32_t
Subnet(uint32_t side, uint32_t i)
{
    return (side << 24) | (i << 8);
}

// Routing by one array access. A router knows the interface of each of its hosts; everything else takes the default.
class Routes : public Ipv4RoutingProtocol
{
  public:
    void SetDefault(Ptr<NetDevice> device, Ipv4Address source)
    {
        m_default = Route(device, source);
    }

    void SetHost(uint32_t i, Ptr<NetDevice> device, Ipv4Address source, uint32_t side)
    {
        m_side = side;
        if (m_hosts.size() <= i)
        {
            m_hosts.resize(i + 1);
        }
        m_hosts[i] = Route(device, source);
    }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>,
                               const Ipv4Header& header,
                               Ptr<NetDevice>,
                               Socket::SocketErrno& error) override
    {
        error = Socket::ERROR_NOTERROR;
        return Find(header.GetDestination());
    }

    bool RouteInput(Ptr<const Packet> packet,
                    const Ipv4Header& header,
                    Ptr<const NetDevice> device,
                    UnicastForwardCallback forward,
                    MulticastForwardCallback,
                    LocalDeliverCallback deliver,
                    ErrorCallback) override
    {
        // Hosts only receive and routers only forward here; asking ns-3 whether the address is its own walks all interfaces.
        if (m_hosts.empty())
        {
            deliver(packet, header, m_ipv4->GetInterfaceForDevice(device));
        }
        else
        {
            forward(Find(header.GetDestination()), packet, header);
        }
        return true;
    }

    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

    void SetIpv4(Ptr<Ipv4> ipv4) override
    {
        m_ipv4 = ipv4;
    }

  private:
    static Ptr<Ipv4Route> Route(Ptr<NetDevice> device, Ipv4Address source)
    {
        Ptr<Ipv4Route> route = Create<Ipv4Route>();
        route->SetOutputDevice(device);
        route->SetSource(source);
        route->SetGateway(Ipv4Address("0.0.0.0"));
        return route;
    }

    Ptr<Ipv4Route> Find(Ipv4Address destination) const
    {
        const uint32_t address = destination.Get();
        if (!m_hosts.empty() && (address >> 24) == m_side)
        {
            return m_hosts[(address >> 8) & 0xffff];
        }
        return m_default;
    }

    Ptr<Ipv4> m_ipv4;
    Ptr<Ipv4Route> m_default;
    std::vector<Ptr<Ipv4Route>> m_hosts;
    uint32_t m_side = 0;
};

class RoutesHelper : public Ipv4RoutingHelper
{
  public:
    Ipv4RoutingHelper* Copy() const override
    {
        return new RoutesHelper(*this);
    }

    Ptr<Ipv4RoutingProtocol> Create(Ptr<Node>) const override
    {
        return CreateObject<Routes>();
    }
};

Ptr<Routes>
RoutesOf(Ptr<Node> node)
{
    return DynamicCast<Routes>(node->GetObject<Ipv4>()->GetRoutingProtocol());
}

void
GiveAddress(Ptr<NetDevice> device, uint32_t address)
{
    Ptr<Ipv4> ipv4 = device->GetNode()->GetObject<Ipv4>();
    const uint32_t interface = ipv4->AddInterface(device);
    ipv4->AddAddress(interface, Ipv4InterfaceAddress(Ipv4Address(address), Ipv4Mask("255.255.255.0")));
    ipv4->SetUp(interface);
}

// Time from a packet's arrival at the bottleneck queue to the start of its transmission, one sample a packet.
// A retransmission shares the uid of the first transmission; the two are told apart because the first has left or was dropped.
class Waits
{
  public:
    void Arrived(Ptr<const Packet> packet)
    {
        m_arrivals[packet->GetUid()] = Simulator::Now().GetNanoSeconds();
    }

    void Gone(Ptr<const Packet> packet)
    {
        m_arrivals.erase(packet->GetUid());
    }

    void Started(Ptr<const Packet> packet)
    {
        auto found = m_arrivals.find(packet->GetUid());
        if (found == m_arrivals.end())
        {
            return;
        }
        const int64_t now = Simulator::Now().GetNanoSeconds();
        if (m_file.is_open())
        {
            m_file << now * 1e-9 << ' ' << (now - found->second) * 1e-6 << '\n';
        }
        if (now >= m_from)
        {
            m_samples.push_back((now - found->second) * 1e-6);
        }
        m_arrivals.erase(found);
    }

    double Mean() const
    {
        double sum = 0;
        for (double x : m_samples)
        {
            sum += x;
        }
        return m_samples.empty() ? 0 : sum / m_samples.size();
    }

    double Percentile(double q)
    {
        if (m_samples.empty())
        {
            return 0;
        }
        std::sort(m_samples.begin(), m_samples.end());
        return m_samples[std::min(m_samples.size() - 1, size_t(q * m_samples.size()))];
    }

    void From(double seconds)
    {
        m_from = int64_t(seconds * 1e9);
    }

    void Log(const std::string& path)
    {
        m_file.open(path);
        m_file.precision(10);
    }

  private:
    std::unordered_map<uint64_t, int64_t> m_arrivals;
    std::vector<double> m_samples;
    std::ofstream m_file;
    int64_t m_from = 0;
};

Waits g_waits;
std::ofstream g_cwnd;

void
ItemArrived(Ptr<const QueueDiscItem> item)
{
    g_waits.Arrived(item->GetPacket());
}

void
ItemGone(Ptr<const QueueDiscItem> item)
{
    g_waits.Gone(item->GetPacket());
}

void
LogCwnd(uint32_t flow, uint32_t, uint32_t cwnd)
{
    g_cwnd << Simulator::Now().GetSeconds() << ' ' << flow << ' ' << cwnd / 1460.0 << '\n';
}

void
ConnectCwnd(Ptr<BulkSendApplication> source, uint32_t flow)
{
    source->GetSocket()->TraceConnectWithoutContext("CongestionWindow", MakeBoundCallback(&LogCwnd, flow));
}

// The counters at one moment; all rates are differences of two of these.
struct Counters
{
    double cpu = 0;
    uint64_t forwarded = 0;
    uint64_t arrived = 0;
    uint64_t dropped = 0;
    uint64_t marked = 0;
    std::vector<uint64_t> delivered;
};

struct Dumbbell
{
    Ptr<PointToPointNetDevice> bottleneck;
    Ptr<QueueDisc> queueDisc;
    std::vector<Ptr<PacketSink>> sinks;

    Counters Count() const
    {
        Counters c;
        c.cpu = CpuSeconds();
        Ptr<Queue<Packet>> queue = bottleneck->GetQueue();
        c.forwarded = queue->GetTotalReceivedPackets() - queue->GetNPackets();
        if (queueDisc)
        {
            const QueueDisc::Stats& stats = queueDisc->GetStats();
            c.arrived = stats.nTotalReceivedPackets;
            c.dropped = stats.nTotalDroppedPackets;
            c.marked = stats.nTotalMarkedPackets;
        }
        else
        {
            c.arrived = queue->GetTotalReceivedPackets() + queue->GetTotalDroppedPackets();
            c.dropped = queue->GetTotalDroppedPackets();
        }
        for (const auto& sink : sinks)
        {
            c.delivered.push_back(sink->GetTotalRx());
        }
        return c;
    }
};

void
Refuse(const std::string& what)
{
    std::fprintf(stderr, "error: %s\n", what.c_str());
    std::exit(2);
}

void
SetTcp(const Options& o)
{
    const std::string segment = "ns3::Tcp" + o.tcp;
    TypeId kind;
    if (!TypeId::LookupByNameFailSafe(segment, &kind))
    {
        Refuse("unknown tcp `" + o.tcp + "`; for example NewReno, LinuxReno, Cubic");
    }
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(kind));
    const std::string recovery = o.recovery == "Prr" ? "ns3::TcpPrrRecovery" : "ns3::TcpClassicRecovery";
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TypeId::LookupByName(recovery)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(o.delack));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(o.initialWindow));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(o.buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(o.buffer));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(o.minRto)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(o.sack));
    if (o.ecn)
    {
        Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));
    }
}

// Builds queue disc `o.queue` on the bottleneck's sending device.
Ptr<QueueDisc>
InstallQueueDisc(const Options& o, Ptr<NetDevice> device)
{
    std::string type = "ns3::" + o.queue + "QueueDisc";
    TrafficControlHelper helper;
    if (o.queue == "Red" || o.queue == "ARed")
    {
        helper.SetRootQueueDisc("ns3::RedQueueDisc",
                                "ARED", BooleanValue(o.queue == "ARed"),
                                "MeanPktSize", UintegerValue(o.meanPacket),
                                "LinkBandwidth", DataRateValue(DataRate(uint64_t(o.rate))),
                                "LinkDelay", TimeValue(MilliSeconds(kBottleneckDelayMs)));
    }
    else
    {
        TypeId kind;
        if (!TypeId::LookupByNameFailSafe(type, &kind))
        {
            Refuse("unknown queue `" + o.queue + "`; one of dev, Fifo, Red, ARed, CoDel, FqCoDel, Pie");
        }
        helper.SetRootQueueDisc(type);
    }
    if (o.target > 0)
    {
        // CoDel holds it as a Time, FqCoDel as a string.
        const std::string text = std::to_string(o.target) + "ms";
        Config::SetDefault("ns3::CoDelQueueDisc::Target", StringValue(text));
        Config::SetDefault("ns3::FqCoDelQueueDisc::Target", StringValue(text));
    }
    Ptr<QueueDisc> disc = helper.Install(device).Get(0);
    if (o.limit > 0)
    {
        disc->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, o.limit));
    }
    return disc;
}

} // namespace

int
main(int argc, char** argv)
{
    Options o;
    CommandLine words(__FILE__);
    words.AddValue("flows", "number of flows", o.flows);
    words.AddValue("rate", "bottleneck, bit/s", o.rate);
    words.AddValue("access", "access links, bit/s", o.access);
    words.AddValue("rttMin", "least base RTT, ms", o.rttMin);
    words.AddValue("rttMax", "greatest base RTT, ms; evenly spaced between", o.rttMax);
    words.AddValue("queue", "dev, Fifo, Red, ARed, CoDel, FqCoDel, Pie, ...", o.queue);
    words.AddValue("limit", "packets; 0 keeps the queue disc's default", o.limit);
    words.AddValue("tcp", "NewReno, LinuxReno, Cubic, ...", o.tcp);
    words.AddValue("delack", "segments per ACK", o.delack);
    words.AddValue("iw", "initial window, segments", o.initialWindow);
    words.AddValue("minRto", "s", o.minRto);
    words.AddValue("sack", "selective acknowledgements", o.sack);
    words.AddValue("recovery", "Prr or Classic", o.recovery);
    words.AddValue("ecn", "ECN on", o.ecn);
    words.AddValue("target", "CoDel's and FqCoDel's target, ms; 0 keeps the default of 5", o.target);
    words.AddValue("meanPacket", "mean packet size RED assumes, bytes", o.meanPacket);
    words.AddValue("buffer", "socket buffers, bytes", o.buffer);
    words.AddValue("duration", "s", o.duration);
    words.AddValue("warmup", "s left out of every number", o.warmup);
    words.AddValue("startSpread", "flows start uniformly over this many s", o.startSpread);
    words.AddValue("seed", "seed", o.seed);
    words.AddValue("monitor", "measure waiting times", o.monitor);
    words.AddValue("traceCwnd", "file for cwnd changes", o.traceCwnd);
    words.AddValue("traceQueue", "file for every packet's wait", o.traceQueue);
    words.Parse(argc, argv);

    if (o.flows < 1 || o.flows > 65535 || o.rate <= 0 || o.access <= 0 || o.duration <= o.warmup || o.rttMax < o.rttMin)
    {
        Refuse("flows must be 1 to 65535, rates above zero, duration above warmup, rttMax not below rttMin");
    }
    if (o.queue == "dev" && o.limit == 0)
    {
        Refuse("the device queue needs a limit in packets, like --limit=100");
    }
    if (o.recovery != "Prr" && o.recovery != "Classic")
    {
        Refuse("unknown recovery `" + o.recovery + "`; Prr or Classic");
    }

    const double cpuStart = CpuSeconds();
    GlobalValue::Bind("SchedulerType", TypeIdValue(HeapScheduler::GetTypeId()));
    RngSeedManager::SetSeed(o.seed);
    SetTcp(o);

    InternetStackHelper stack;
    stack.SetRoutingHelper(RoutesHelper());
    stack.SetIpv6StackInstall(false);
    NodeContainer routers;
    routers.Create(2);
    NodeContainer sources;
    sources.Create(o.flows);
    NodeContainer sinks;
    sinks.Create(o.flows);
    stack.Install(routers);
    stack.Install(sources);
    stack.Install(sinks);

    // The bottleneck. The way back never queues.
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(o.rate))));
    wire.SetChannelAttribute("Delay", TimeValue(MilliSeconds(kBottleneckDelayMs)));
    const bool deviceQueue = o.queue == "dev";
    if (deviceQueue)
    {
        wire.DisableFlowControl();
    }
    const std::string deviceLimit = std::to_string(deviceQueue ? o.limit : 1) + "p";
    wire.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(deviceLimit));
    NetDeviceContainer link = wire.Install(routers);
    Dumbbell bell;
    bell.bottleneck = DynamicCast<PointToPointNetDevice>(link.Get(0));
    if (!deviceQueue)
    {
        bell.queueDisc = InstallQueueDisc(o, link.Get(0));
    }
    DynamicCast<PointToPointNetDevice>(link.Get(1))->GetQueue()->SetMaxSize(QueueSize("1000000p"));
    const uint32_t middle = 9u << 24;
    GiveAddress(link.Get(0), middle + 1);
    GiveAddress(link.Get(1), middle + 2);
    RoutesOf(routers.Get(0))->SetDefault(link.Get(0), Ipv4Address(middle + 1));
    RoutesOf(routers.Get(1))->SetDefault(link.Get(1), Ipv4Address(middle + 2));

    // The access links: one source and one sink a flow.
    PointToPointHelper access;
    access.DisableFlowControl();
    access.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(o.access))));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));
    Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    const uint16_t port = 5000;
    for (uint32_t i = 0; i < o.flows; i++)
    {
        const double step = o.flows > 1 ? (o.rttMax - o.rttMin) / (o.flows - 1) : 0;
        const double leftMs = (o.rttMin + step * i) / 2 - kBottleneckDelayMs - kRightDelayMs;
        if (leftMs < 0)
        {
            Refuse("an RTT is shorter than the 22 ms of the bottleneck and the right side");
        }
        access.SetChannelAttribute("Delay", TimeValue(NanoSeconds(int64_t(leftMs * 1e6 + 0.5))));
        NetDeviceContainer left = access.Install(sources.Get(i), routers.Get(0));
        access.SetChannelAttribute("Delay", TimeValue(MilliSeconds(kRightDelayMs)));
        NetDeviceContainer right = access.Install(routers.Get(1), sinks.Get(i));
        const uint32_t here = Subnet(10, i);
        const uint32_t there = Subnet(11, i);
        GiveAddress(left.Get(0), here + 2);
        GiveAddress(left.Get(1), here + 1);
        GiveAddress(right.Get(0), there + 1);
        GiveAddress(right.Get(1), there + 2);
        RoutesOf(sources.Get(i))->SetDefault(left.Get(0), Ipv4Address(here + 2));
        RoutesOf(sinks.Get(i))->SetDefault(right.Get(1), Ipv4Address(there + 2));
        RoutesOf(routers.Get(0))->SetHost(i, left.Get(1), Ipv4Address(here + 1), 10);
        RoutesOf(routers.Get(1))->SetHost(i, right.Get(0), Ipv4Address(there + 1), 11);

        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        bell.sinks.push_back(DynamicCast<PacketSink>(sink.Install(sinks.Get(i)).Get(0)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address(there + 2), port));
        bulk.SetAttribute("SendSize", UintegerValue(1460));
        ApplicationContainer source = bulk.Install(sources.Get(i));
        const double at = start->GetValue(0, o.startSpread);
        source.Start(Seconds(at));
        if (!o.traceCwnd.empty())
        {
            Simulator::Schedule(Seconds(at + 1e-6),
                                &ConnectCwnd,
                                DynamicCast<BulkSendApplication>(source.Get(0)),
                                i);
        }
    }

    if (!o.traceCwnd.empty())
    {
        g_cwnd.open(o.traceCwnd);
        g_cwnd.precision(10);
    }
    if (!o.traceQueue.empty())
    {
        g_waits.Log(o.traceQueue);
    }
    if (o.monitor || !o.traceQueue.empty())
    {
        g_waits.From(o.warmup);
        if (bell.queueDisc)
        {
            bell.queueDisc->TraceConnectWithoutContext("Enqueue", MakeCallback(&ItemArrived));
            bell.queueDisc->TraceConnectWithoutContext("Drop", MakeCallback(&ItemGone));
        }
        else
        {
            bell.bottleneck->TraceConnectWithoutContext("MacTx", MakeCallback(&Waits::Arrived, &g_waits));
            bell.bottleneck->TraceConnectWithoutContext("MacTxDrop", MakeCallback(&Waits::Gone, &g_waits));
        }
        bell.bottleneck->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Waits::Started, &g_waits));
    }

    const double cpuBuilt = CpuSeconds();
    const double rssBuilt = PeakRssMb();
    Counters before;
    Simulator::Schedule(Seconds(o.warmup), [&]() { before = bell.Count(); });
    Simulator::Stop(Seconds(o.duration));
    Simulator::Run();
    const Counters after = bell.Count();

    const double seconds = o.duration - o.warmup;
    double sum = 0;
    double squares = 0;
    for (uint32_t i = 0; i < o.flows; i++)
    {
        const double x = double(after.delivered[i]) - before.delivered[i];
        sum += x;
        squares += x * x;
    }
    const uint64_t forwarded = after.forwarded - before.forwarded;
    const uint64_t arrived = after.arrived - before.arrived;
    const uint64_t dropped = after.dropped - before.dropped;
    std::printf("{\"simulator\": \"ns-3\", \"flows\": %u, \"cpu_window_s\": %.4f, \"cpu_s\": %.4f, "
                "\"setup_cpu_s\": %.4f, \"peak_rss_mb\": %.2f, \"rss_before_mb\": %.2f, \"goodput_mbps\": %.5f, "
                "\"delivered_packets\": %.0f, \"jain\": %.5f, \"forwarded_packets\": %llu, "
                "\"forwarded_packets_whole\": %llu, \"utilisation\": %.6f, \"loss\": %.7f, \"marked_packets\": %llu",
                o.flows,
                after.cpu - before.cpu,
                after.cpu - cpuStart,
                cpuBuilt - cpuStart,
                PeakRssMb(),
                rssBuilt,
                sum * 8e-6 / seconds,
                sum / 1460,
                squares > 0 ? sum * sum / (o.flows * squares) : 1.0,
                (unsigned long long)forwarded,
                (unsigned long long)after.forwarded,
                forwarded * 1502 * 8.0 / seconds / o.rate,
                arrived > 0 ? double(dropped) / arrived : 0.0,
                (unsigned long long)(after.marked - before.marked));
    if (o.monitor)
    {
        const double mean = g_waits.Mean();
        std::printf(", \"wait_mean_ms\": %.5f, \"wait_p50_ms\": %.5f, \"wait_p95_ms\": %.5f, \"wait_p99_ms\": %.5f",
                    mean,
                    g_waits.Percentile(0.50),
                    g_waits.Percentile(0.95),
                    g_waits.Percentile(0.99));
    }
    std::printf("}\n");
    Simulator::Destroy();
    return 0;
}
