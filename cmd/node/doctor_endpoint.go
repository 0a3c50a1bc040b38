package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/doctor"
)

// An endpoint is a service that the hub calls over the network, because it is
// not embedded.
type endpoint struct {
	setting string   // setting that specifies the service
	url     *url.URL // url is nil if the service is not configured
	scope   string   // scope of the tokens that the hub requests; "" if the hub uses a key
	service string   // name of the service in findings
}

func (d *diagnosis) cosmosEndpoint() endpoint {
	e := endpoint{setting: "cosmos.endpoint", url: parsedURL(d.cfg.Cosmos.Endpoint), service: "Cosmos DB"}
	if d.cfg.Cosmos.Key == "" && e.url != nil {
		e.scope = "https://" + e.url.Hostname() + "/.default" // azcosmos requests this scope
	}
	return e
}

func (d *diagnosis) blobEndpoint() endpoint {
	e := endpoint{setting: "blob.endpoint", url: parsedURL(d.cfg.Blob.Endpoint), service: "Blob Storage"}
	if d.cfg.Blob.Key == "" {
		e.scope = "https://storage.azure.com/.default"
	}
	return e
}

// parsedURL parses a URL. It returns nil if the text is not an absolute URL.
func parsedURL(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil
	}
	return u
}

// addEndpoint adds the checks of a service that the hub calls over HTTP.
func (d *diagnosis) addEndpoint(add addCheck, part string, e endpoint) {
	add(part+".name", func(ctx context.Context) []doctor.Finding { return d.checkName(ctx, e) })
	add(part+".connection", func(ctx context.Context) []doctor.Finding { return d.checkConnection(ctx, part, e) }, part+".name")
	add(part+".clock", func(context.Context) []doctor.Finding { return d.checkClock(part) }, part+".connection")
	add(part+".token", func(ctx context.Context) []doctor.Finding { return d.checkToken(ctx, e) }, "identity")
}

// checkProxy reports which proxy the hub uses for each service.
func (d *diagnosis) checkProxy(context.Context) []doctor.Finding {
	var found []doctor.Finding
	for _, e := range d.endpoints() {
		proxy, err := d.proxyOf(e.url)
		switch {
		case err != nil:
			found = append(found, doctor.Fail(e.setting, "the variables of the proxy are wrong: "+err.Error(), "correct HTTPS_PROXY, HTTP_PROXY and NO_PROXY"))
		case proxy != nil:
			found = append(found, doctor.Passed(e.setting, "%s is called by the proxy %s", e.url.Hostname(), proxy.Redacted()))
		}
	}
	if host := d.busHost(); host != "" {
		if proxy, err := d.proxyOf(&url.URL{Scheme: "https", Host: host}); err == nil && proxy != nil {
			found = append(found, doctor.Warn("servicebus.namespace", fmt.Sprintf("a proxy is set (%s), and AMQP does not use it: the hub connects to port 5671 of %s directly", proxy.Redacted(), host),
				"allow outgoing connections to port 5671 of the namespace"))
		}
	}
	return passedUnless(found, "no proxy is used")
}

// endpoints returns all services that the hub calls over HTTP.
func (d *diagnosis) endpoints() (all []endpoint) {
	add := func(e endpoint) {
		if e.url != nil {
			all = append(all, e)
		}
	}
	if !d.cfg.Embedded() {
		add(d.cosmosEndpoint())
	}
	if !d.cfg.EmbeddedBlob() {
		add(d.blobEndpoint())
	}
	for _, issuer := range d.cfg.OIDC.Issuers {
		add(endpoint{setting: "oidc.issuer", url: parsedURL(issuer), service: "the issuer"})
	}
	return all
}

// proxyOf returns the proxy for a URL, or nil for no proxy.
func (d *diagnosis) proxyOf(u *url.URL) (*url.URL, error) {
	return d.opts.network.proxy(&http.Request{URL: u})
}

// checkName resolves an endpoint's host name.
func (d *diagnosis) checkName(ctx context.Context, e endpoint) []doctor.Finding {
	if e.url == nil {
		return singleFinding(doctor.Fail(e.setting, "it is not a URL", "correct "+e.setting))
	}
	if proxy, err := d.proxyOf(e.url); err == nil && proxy != nil {
		return singleFinding(doctor.Passed("", "the proxy looks up %s", e.url.Hostname()))
	}
	return singleFinding(d.lookUp(ctx, e.setting, e.url.Hostname()))
}

// lookUp resolves a host name, and returns a finding with the addresses.
func (d *diagnosis) lookUp(ctx context.Context, setting, host string) doctor.Finding {
	if _, err := netip.ParseAddr(host); err == nil {
		return doctor.Passed("", "%s is an address", host)
	}
	addresses, err := d.opts.network.resolve(ctx, host)
	if err == nil && len(addresses) == 0 {
		err = errors.New("it has no address")
	}
	if err != nil {
		remedy := "correct " + setting + ", or check the resolver of this machine and, for a private endpoint, the private DNS zone"
		if failure, ok := errors.AsType[*net.DNSError](err); ok && !failure.IsNotFound {
			remedy = "check the network of this machine and its resolver"
		}
		return doctor.Fail(setting, fmt.Sprintf("the name %s cannot be looked up: %v", host, err), remedy)
	}
	var texts []string
	for _, a := range addresses {
		text := a.Unmap().String()
		if a.Unmap().IsPrivate() {
			text += " (private)"
		}
		texts = append(texts, text)
	}
	return doctor.Passed("", "%s is %s", host, strings.Join(texts, ", "))
}

// An endpointAnswer is an endpoint's response to a request without a token.
type endpointAnswer struct {
	date     string    // header Date
	received time.Time // time midway between request and response, on this machine's clock
}

func (d *diagnosis) setAnswer(part string, a *endpointAnswer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[part] = a
}

func (d *diagnosis) endpointAnswer(part string) *endpointAnswer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answers[part]
}

// checkConnection sends a request without a token. If there is any response,
// the endpoint is reachable.
func (d *diagnosis) checkConnection(ctx context.Context, part string, e endpoint) []doctor.Finding {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url.Scheme+"://"+e.url.Host+"/", http.NoBody)
	if err != nil {
		return singleFinding(doctor.Fail(e.setting, err.Error(), "correct "+e.setting))
	}
	sent := d.clock()
	resp, err := d.opts.network.probes.Do(req)
	if err != nil {
		return singleFinding(d.explainConnection(ctx, e.setting, e.url.Hostname(), portOf(e.url), e.url, err))
	}
	_ = resp.Body.Close() // the body is not needed, because only the header is used
	d.setAnswer(part, &endpointAnswer{resp.Header.Get("Date"), sent.Add(d.clock().Sub(sent) / 2)})
	if resp.StatusCode == http.StatusProxyAuthRequired {
		return singleFinding(d.explainConnection(ctx, e.setting, e.url.Hostname(), portOf(e.url), e.url, errors.New(proxyAuthRequired)))
	}
	return singleFinding(d.connectedFinding(e.setting, e.url.Hostname(), resp.TLS))
}

// connectedFinding returns the finding about an endpoint that responded.
func (d *diagnosis) connectedFinding(setting, host string, state *tls.ConnectionState) doctor.Finding {
	if state == nil || len(state.PeerCertificates) == 0 {
		return doctor.Passed("", "%s answers, without TLS", host)
	}
	f := d.expiryOf(setting, state.PeerCertificates[0], "the certificate of "+host, "its owner has to renew it")
	if f.State != doctor.OK {
		return f
	}
	return doctor.Passed("", "%s answers; %s, certificate until %s", host, tls.VersionName(state.Version), state.PeerCertificates[0].NotAfter.Format(time.DateOnly))
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// explainConnection returns the finding about an endpoint that did not respond.
// The URL u determines the proxy; if u is nil, no proxy is used.
func (d *diagnosis) explainConnection(ctx context.Context, setting, host, port string, u *url.URL, err error) doctor.Finding {
	var proxy *url.URL
	if u != nil {
		proxy, _ = d.proxyOf(u) // if this fails, the request itself fails with the same error
	}
	if proxy != nil {
		if f, isOfProxy := explainProxy(setting, host, proxy, err); isOfProxy {
			return f
		}
	}
	fail := func(text, remedy string) doctor.Finding { return doctor.Fail(setting, text, remedy) }
	if authority, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		issuer := "an authority that it does not name"
		if authority.Cert != nil {
			issuer = authority.Cert.Issuer.String()
		}
		return fail(fmt.Sprintf("this machine does not trust the certificate of %s, which is of %s", host, issuer),
			"if a proxy inspects TLS, add its authority to the trusted ones of this machine (SSL_CERT_FILE); else correct "+setting)
	}
	if wrong, ok := errors.AsType[x509.HostnameError](err); ok {
		return fail(fmt.Sprintf("the server that answers for %s has a certificate for %s", host, strings.Join(wrong.Certificate.DNSNames, ", ")),
			"correct "+setting+", or the address that the name has on this machine")
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return fail("the certificate of "+host+" is not valid now: "+invalid.Detail, "check the clock of this machine; else the owner of "+host+" has to renew it")
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return fail(fmt.Sprintf("%s does not speak TLS at port %s", host, port), "correct the scheme or the port of "+setting)
	}
	at := net.JoinHostPort(host, port)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail("the connection to "+at+" is refused", "check that the service runs there, and "+setting)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return fail("there is no route to "+at, "check the network of this machine")
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return fail(at+" does not answer in time", "allow outgoing connections to port "+port+" of "+host+" in the firewall, and check the firewall of the account and its private endpoint")
	}
	return fail("the connection to "+at+" fails: "+err.Error(), "check the network of this machine, and "+setting)
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// proxyAuthRequired is the error text of net/http for a proxy that requires a
// password.
var proxyAuthRequired = http.StatusText(http.StatusProxyAuthRequired)

// explainProxy returns the finding about an error caused by the proxy.
// isOfProxy is false if the error has another cause.
func explainProxy(setting, host string, proxy *url.URL, err error) (f doctor.Finding, isOfProxy bool) {
	const remedy = "correct HTTPS_PROXY, or add the host to NO_PROXY"
	op, isOp := errors.AsType[*net.OpError](err)
	text := err.Error()
	switch {
	case strings.Contains(text, proxyAuthRequired):
		return doctor.Fail(setting, "the proxy "+proxy.Redacted()+" asks for a password", "put user and password into HTTPS_PROXY, or add the host to NO_PROXY"), true
	case isOp && (op.Op == "proxyconnect" || op.Op == "dial"), strings.Contains(text, "proxyconnect"):
		return doctor.Fail(setting, "the proxy "+proxy.Redacted()+" cannot be reached: "+text, remedy), true
	case isRefusalOfProxy(text):
		return doctor.Fail(setting, fmt.Sprintf("the proxy %s does not connect to %s: %s", proxy.Redacted(), host, text), "allow "+host+" in the proxy, or add it to NO_PROXY"), true
	}
	return f, false
}

// isRefusalOfProxy reports whether an error text ends with a status with which
// a proxy refuses CONNECT. Package net/http returns only this text, without a
// type or a code.
func isRefusalOfProxy(text string) bool {
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		if strings.HasSuffix(text, ": "+http.StatusText(status)) {
			return true
		}
	}
	return false
}

// Differences between clocks. Above riskySkew, requests may soon be refused;
// above refusedSkew, they are refused. Microsoft Entra and Service Bus accept
// tokens within 5 minutes; Cosmos DB and Blob Storage accept signatures within
// 15 minutes.
const (
	riskySkew   = 30 * time.Second
	refusedSkew = 5 * time.Minute
)

// checkClock compares this machine's clock with an endpoint's clock.
func (d *diagnosis) checkClock(part string) []doctor.Finding {
	return singleFinding(d.compareClock("", d.endpointAnswer(part)))
}

func (d *diagnosis) compareClock(subject string, a *endpointAnswer) doctor.Finding {
	if a == nil {
		return doctor.Skip(subject, "no answer was received")
	}
	theirs, err := http.ParseTime(a.date)
	if err != nil {
		return doctor.Skip(subject, "the answer has no time")
	}
	skew := a.received.Sub(theirs.Add(500 * time.Millisecond)) // half a second is added because the Date header contains whole seconds
	text := fmt.Sprintf("the clock of this machine is %s %s", skew.Abs().Round(time.Second), map[bool]string{true: "behind", false: "ahead"}[skew < 0])
	const remedy = "synchronize the clock of this machine, such as with timedatectl set-ntp true"
	switch {
	case skew.Abs() >= refusedSkew:
		return doctor.Fail(subject, text+"; tokens and signatures are refused", remedy)
	case skew.Abs() >= riskySkew:
		return doctor.Warn(subject, text+"; from 5 minutes on tokens and signatures are refused", remedy)
	}
	return doctor.Passed(subject, "the clock of this machine differs by less than %s", max(time.Second, skew.Abs().Truncate(time.Second)+time.Second))
}

// chargeOf returns the request units reported in the headers of a Cosmos
// response.
func chargeOf(header http.Header) float64 {
	charge, err := strconv.ParseFloat(header.Get("x-ms-request-charge"), 64)
	if err != nil {
		return 0
	}
	return charge
}

// busHost returns the namespace's host. It returns "" if the bus is embedded,
// or the setting is invalid.
func (d *diagnosis) busHost() string {
	if d.cfg.EmbeddedBus() {
		return ""
	}
	if namespace := d.cfg.ServiceBus.Namespace; namespace != "" {
		return namespace
	}
	return hostOfConnection(d.cfg.ServiceBus.Connection)
}

// hostOfConnection returns the host, and the port if present, in a connection
// string.
func hostOfConnection(connection config.Secret) string {
	for part := range strings.SplitSeq(connection.Reveal(), ";") {
		name, value, _ := strings.Cut(part, "=")
		if strings.EqualFold(strings.TrimSpace(name), "Endpoint") {
			if u := parsedURL(strings.TrimSpace(value)); u != nil {
				return u.Host
			}
		}
	}
	return ""
}
