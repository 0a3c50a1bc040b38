package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	buslinks "github.com/messagehub/messagehub/api/servicebus/probe"
	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cmd/node/doctor"
)

// addBus adds the checks of the Service Bus namespace.
func (d *diagnosis) addBus(add addCheck) {
	e := endpoint{setting: d.busSetting(), service: "Service Bus"}
	if d.cfg.ServiceBus.Namespace != "" {
		e.scope = "https://servicebus.azure.net//.default" // azservicebus requests this scope
	}
	add("servicebus.name", d.checkBusName)
	add("servicebus.connection", d.checkBusConnection, "servicebus.name")
	add("servicebus.clock", d.checkBusClock, "servicebus.name")
	add("servicebus.token", func(ctx context.Context) []doctor.Finding { return d.checkToken(ctx, e) }, "identity")
	add("servicebus.rights", d.checkBusRights, "servicebus.connection", "servicebus.token")
	add("servicebus.queues", d.checkBusQueues, "servicebus.clock", "servicebus.token")
}

// busSetting returns the name of the setting that specifies the namespace.
func (d *diagnosis) busSetting() string {
	if d.cfg.ServiceBus.Namespace != "" {
		return "servicebus.namespace"
	}
	return "servicebus.connection"
}

func (d *diagnosis) isBusEmulator() bool { return isEmulator(d.cfg.ServiceBus.Connection.Reveal()) }

// busHostname returns the namespace's host name, without a port.
func (d *diagnosis) busHostname() string {
	host := d.busHost()
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

func (d *diagnosis) checkBusName(ctx context.Context) []doctor.Finding {
	host := d.busHostname()
	if host == "" {
		return singleFinding(doctor.Fail(d.busSetting(), "it is not a connection string of a namespace", "set it to Endpoint=sb://NAME.servicebus.windows.net/;SharedAccessKeyName=…;SharedAccessKey=…"))
	}
	return singleFinding(d.lookUp(ctx, d.busSetting(), host))
}

// checkBusConnection connects to the namespace's AMQP port, because the hub
// uses no other port.
func (d *diagnosis) checkBusConnection(ctx context.Context) []doctor.Finding {
	conn, err := d.opts.network.dialBus(ctx, "wss://"+d.busHost()+"/", d.isBusEmulator())
	if err != nil {
		return singleFinding(d.explainBusConnection(ctx, err))
	}
	secured, isTLS := conn.(*tls.Conn)
	_ = conn.Close() // nothing was written to the connection
	if !isTLS {
		return singleFinding(doctor.Passed("", "%s accepts AMQP, without TLS", d.busHost()))
	}
	state := secured.ConnectionState()
	return singleFinding(d.connectedFinding(d.busSetting(), d.busHostname(), &state))
}

// explainBusConnection returns the finding about a namespace that could not be
// reached over AMQP. If the HTTPS port can be reached, the finding says that a
// firewall permits only web traffic.
func (d *diagnosis) explainBusConnection(ctx context.Context, err error) doctor.Finding {
	port := "5671"
	if _, own, splitErr := net.SplitHostPort(d.busHost()); splitErr == nil {
		port = own
	} else if d.isBusEmulator() {
		port = "5672"
	}
	f := d.explainConnection(ctx, d.busSetting(), d.busHostname(), port, nil, err)
	if d.isBusEmulator() || !isTimeout(err) && ctx.Err() == nil && !strings.Contains(f.Text, "refused") && !strings.Contains(f.Text, "no route") {
		return f
	}
	trying, cancel := context.WithTimeout(context.WithoutCancel(ctx), hubTimeout)
	defer cancel()
	if d.requestBus(trying) == nil {
		f.Text += "; port 443 of it is reached"
		f.Remedy = "allow outgoing connections to port 5671 of " + d.busHostname() + ": the hub speaks AMQP there, and not over WebSockets at port 443"
	}
	return f
}

// requestBus sends a request without a token to the namespace, and records the
// time in the response.
func (d *diagnosis) requestBus(ctx context.Context) error {
	scheme := map[bool]string{true: "http://", false: "https://"}[d.isBusEmulator()]
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+d.busHost()+"/$namespaceinfo", http.NoBody)
	if err != nil {
		return err
	}
	sent := d.clock()
	resp, err := d.opts.network.probes.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // the body is not needed, because only the header is used
	d.setAnswer("servicebus", &endpointAnswer{resp.Header.Get("Date"), sent.Add(d.clock().Sub(sent) / 2)})
	return nil
}

func (d *diagnosis) checkBusClock(ctx context.Context) []doctor.Finding {
	if err := d.requestBus(ctx); err != nil {
		return singleFinding(doctor.Skip("", "the management of the namespace does not answer: %v", err))
	}
	return d.checkClock("servicebus")
}

// busLinks returns the links that the hub opens to queues, according to the
// roles granted in package deployment.
func (d *diagnosis) busLinks() (links []buslinks.Link) {
	table := deployment.NewTable(d.cfg)
	for _, g := range table.Grants {
		if g.Identity != deployment.Hub || g.Scope.Kind != deployment.QueueScope {
			continue
		}
		i := slices.IndexFunc(table.Queues, func(q deployment.Queue) bool { return q.Name == g.Scope.Name })
		links = append(links, buslinks.Link{Queue: g.Scope.Name, Sends: g.Role == deployment.Sender, Sessions: i >= 0 && table.Queues[i].Sessions})
	}
	return links
}

// checkBusRights opens a link for each right, without sending a message.
func (d *diagnosis) checkBusRights(ctx context.Context) []doctor.Finding {
	b, err := azureBus(ctx, d.cfg, d.opts)
	if err != nil {
		return singleFinding(doctor.Fail(d.busSetting(), err.Error(), "correct "+d.busSetting()))
	}
	client, err := b.open()
	if err != nil {
		return singleFinding(doctor.Fail(d.busSetting(), err.Error(), "correct "+d.busSetting()))
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), hubTimeout)
		defer cancel()
		_ = client.Close(closing) // if Close fails, the namespace closes the idle connection later
	}()
	results := buslinks.Run(ctx, client, "messagehub.doctor-"+d.opts.newID(), d.busLinks())
	var found []doctor.Finding
	receives, sends := 0, 0
	for i := range results {
		r := &results[i]
		if f, isFault := d.linkFinding(r); isFault {
			found = append(found, f)
		} else if r.Sends {
			sends++
		} else {
			receives++
		}
	}
	return passedUnless(found, "the hub may receive from %d queues, and send to %d", receives, sends)
}

// linkFinding returns the finding about a link that could not be opened.
func (d *diagnosis) linkFinding(r *buslinks.Result) (f doctor.Finding, isFault bool) {
	what, role := "receive from", deployment.Receiver.Name
	if r.Sends {
		what, role = "send to", deployment.Sender.Name
	}
	switch r.Outcome {
	case buslinks.Granted:
		return f, false
	case buslinks.Denied:
		remedy := fmt.Sprintf("give the identity the role %s for the queue; messagehub provision --format az prints the commands", role)
		if d.cfg.ServiceBus.Connection != "" {
			remedy = "use a connection string whose key has the rights Listen and Send"
		}
		return doctor.Fail(r.Queue, fmt.Sprintf("the credential may not %s the queue %s", what, r.Queue), remedy), true
	case buslinks.Missing:
		return doctor.Fail(r.Queue, "the queue "+r.Queue+" does not exist", "run messagehub provision, or correct its name in the settings"), true
	case buslinks.OtherSessions:
		want := map[bool]string{true: "has no sessions, and the hub needs them", false: "has sessions, and the hub uses none there"}[r.Sessions]
		return doctor.Fail(r.Queue, "the queue "+r.Queue+" "+want, "delete the queue when it is empty, and run messagehub provision"), true
	case buslinks.Disabled:
		return doctor.Fail(r.Queue, "the queue "+r.Queue+" is disabled", "enable it"), true
	default:
		return doctor.Fail(r.Queue, fmt.Sprintf("the right to %s the queue %s could not be tested: %v", what, r.Queue, r.Err), "run messagehub doctor --online again; check the state of the namespace"), true
	}
}

// checkBusQueues compares the namespace's tier and its queues' properties with
// those that the hub needs. Reading them requires the right Manage, which the
// hub itself does not need.
func (d *diagnosis) checkBusQueues(ctx context.Context) []doctor.Finding {
	if d.endpointAnswer("servicebus") == nil {
		return singleFinding(doctor.Skip("", "the management of the namespace does not answer"))
	}
	bus, _, err := manageBus(d.cfg, d.opts)
	if err != nil {
		return singleFinding(doctor.Fail(d.busSetting(), err.Error(), "correct "+d.busSetting()))
	}
	namespace, err := bus.GetNamespaceProperties(ctx, nil)
	switch status := busStatus(err); {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return singleFinding(doctor.Skip("", "the credential may not read properties of queues, which the hub need not; messagehub provision --check with the identity that deploys compares them"))
	case err != nil:
		return singleFinding(doctor.Fail("", explainBus("read the properties of the namespace", err), "allow outgoing connections to port 443 of the namespace; the hub itself does not need them"))
	}
	if strings.EqualFold(namespace.SKU, "Basic") {
		return singleFinding(doctor.Fail("tier", "the namespace has the tier Basic, which has no sessions", "change the tier to Standard or Premium, and run messagehub provision"))
	}
	all, err := d.compareQueues(ctx, bus)
	if err != nil {
		return singleFinding(doctor.Fail("", err.Error(), "run messagehub doctor --online again"))
	}
	found := comparisonFindings(all, "queue")
	if len(found) == 1 && found[0].State == doctor.OK {
		found[0].Text += "; tier " + namespace.SKU
	}
	return found
}

func (d *diagnosis) compareQueues(ctx context.Context, bus *admin.Client) ([]Resource, error) {
	var all []Resource
	queues := deployment.Queues(d.cfg)
	for i := range queues {
		r := newQueueResource(&queues[i])
		provisionQueue(ctx, bus, ProvisionOptions{CheckOnly: true}, &queues[i], &r)
		all = append(all, r)
	}
	return all, ctx.Err()
}
