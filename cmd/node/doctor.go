package node

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/doctor"
	"github.com/messagehub/messagehub/cosmos/embedded/connlimit"
)

// DoctorOptions select which checks Diagnose runs.
type DoctorOptions struct {
	// Online adds checks that call the configured Azure accounts, Service Bus
	// namespace and issuers. Some of these checks write and delete a test
	// document and test blobs.
	Online bool

	// Start selects only cheap checks on which Open depends, but which Open
	// does not make itself: of the configuration, the identity, the proxy, the
	// certificate, and the duration of a write. No check changes data that Open
	// needs.
	Start bool
}

// A Diagnosis contains the results of Diagnose.
type Diagnosis struct {
	doctor.Report
	Units float64       // Cosmos request units that the checks consumed
	Took  time.Duration // duration of all checks together
}

// Diagnose runs the checks of messagehub doctor for a valid configuration. It
// returns every fault as a finding, and never an error. Without Online it calls
// no other machine and consumes no request units. If the process dies, a test
// document, test blobs (see packages cosmos/probe and repository/content), or a
// file .doctor-… in the data folder may remain; the next run deletes them.
func Diagnose(ctx context.Context, cfg *config.Config, do DoctorOptions, opts Options) *Diagnosis {
	return newDiagnosis(cfg, do, opts).run(ctx)
}

// A diagnosis is the state of one call of Diagnose.
type diagnosis struct {
	cfg   *config.Config
	do    DoctorOptions
	opts  *Options
	clock func() time.Time
	meter *unitMeter

	// Properties of the machine, which tests can replace.
	fileLimit   func() int
	variable    func(name string) string // returns the value of an environment variable
	measureDisk func(folder string) (diskUsage, error)
	writeSynced func(folder string) (time.Duration, error)

	mu      sync.Mutex
	answers map[string]*endpointAnswer // responses of the endpoints, by part name
}

func newDiagnosis(cfg *config.Config, do DoctorOptions, opts Options) *diagnosis {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	opts.setConnections(cfg)
	opts.busRetryDelay = 50 * time.Millisecond // short, because an operator waits for the result
	d := &diagnosis{
		cfg: cfg, do: do, opts: &opts, clock: opts.Clock, meter: &unitMeter{},
		fileLimit: connlimit.FileLimit, variable: os.Getenv, measureDisk: measureDisk, writeSynced: func(folder string) (time.Duration, error) { return writeSynced(folder, syncedWrites) },
		answers: make(map[string]*endpointAnswer),
	}
	if d.clock == nil {
		d.clock = time.Now
	}
	d.meter.next = opts.network.documents.Transport
	opts.network.documents.Transport = d.meter
	return d
}

func (d *diagnosis) run(ctx context.Context) *Diagnosis {
	began := time.Now() // the system clock instead of d.clock, because an operator sees the duration
	defer d.opts.network.close()
	report := doctor.Run(ctx, d.checkTable(), doctor.Options{})
	for i := range report.Findings {
		f := &report.Findings[i]
		f.Text, _ = config.Redact(f.Text) // errors of libraries may quote URLs that contain secrets
		f.Remedy, _ = config.Redact(f.Remedy)
	}
	return &Diagnosis{Report: *report, Units: d.meter.units(), Took: time.Since(began)}
}

// keepsData reports whether the hub has data in its data folder.
func (d *diagnosis) keepsData() bool { return d.cfg.UsesFolder() && !d.cfg.InMemory }

// checkTable returns all checks in order: first those of this machine, then
// those of remote services.
func (d *diagnosis) checkTable() []doctor.Check {
	checks := []doctor.Check{
		{Name: "configuration", Run: d.checkConfiguration},
		{Name: "identity", Run: d.checkIdentityVariables},
		{Name: "proxy", Run: d.checkProxy},
		{Name: "certificate", Run: d.checkCertificate},
	}
	keepsData := d.keepsData()
	if d.do.Start {
		if _, err := os.Stat(d.cfg.Data); err == nil && keepsData {
			checks = append(checks, doctor.Check{Name: "sync", Run: d.checkSync})
		}
		return checks
	}
	checks = append(checks, doctor.Check{Name: "files", Run: d.checkFileLimit})
	if keepsData {
		checks = append(checks,
			doctor.Check{Name: "folder", Run: d.checkFolder},
			doctor.Check{Name: "lock", Needs: []string{"folder"}, Run: d.checkLock},
			doctor.Check{Name: "space", Needs: []string{"folder"}, Run: d.checkSpace},
			doctor.Check{Name: "sync", Needs: []string{"folder", "space"}, Run: d.checkSync},
		)
	}
	checks = append(checks, doctor.Check{Name: "ports", Run: d.checkPorts})
	if d.do.Online {
		checks = append(checks, d.onlineChecks()...)
	}
	return checks
}

// onlineChecks returns the checks that call other machines. An embedded part
// needs no such check.
func (d *diagnosis) onlineChecks() []doctor.Check {
	var checks []doctor.Check
	add := func(name string, run func(context.Context) []doctor.Finding, needs ...string) {
		checks = append(checks, doctor.Check{Name: name, Needs: needs, Run: run})
	}
	if !d.cfg.Embedded() {
		e := d.cosmosEndpoint()
		d.addEndpoint(add, "cosmos", e)
		add("cosmos.containers", d.checkCosmosContainers, "cosmos.connection", "cosmos.token")
		add("cosmos.rights", d.checkCosmosRights, "cosmos.connection", "cosmos.token")
		add("cosmos.nodes", d.checkNodes, "cosmos.connection", "cosmos.token")
	}
	if !d.cfg.EmbeddedBlob() {
		e := d.blobEndpoint()
		d.addEndpoint(add, "blob", e)
		add("blob.containers", d.checkBlobContainers, "blob.connection", "blob.token")
		add("blob.rights", d.checkBlobRights, "blob.connection", "blob.token", "blob.containers")
	}
	if !d.cfg.EmbeddedBus() {
		d.addBus(add)
	}
	if d.cfg.OIDC.IsOn() {
		add("issuers", d.checkIssuers)
	}
	return checks
}

type addCheck = func(name string, run func(context.Context) []doctor.Finding, needs ...string)

// A unitMeter is a transport that sums the request units reported by responses.
type unitMeter struct {
	next http.RoundTripper

	mu  sync.Mutex
	sum float64
}

// RoundTrip implements [http.RoundTripper].
func (m *unitMeter) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := m.next.RoundTrip(req)
	if err == nil {
		m.mu.Lock()
		m.sum += chargeOf(resp.Header)
		m.mu.Unlock()
	}
	return resp, err
}

// CloseIdleConnections closes the idle connections of the wrapped transport.
func (m *unitMeter) CloseIdleConnections() {
	if c, ok := m.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (m *unitMeter) units() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sum
}
