package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/certificate"
	"github.com/messagehub/messagehub/domain"
)

// A domainHub is a hub whose bus and exchange domains can reach.
type domainHub struct {
	url     string
	environ []string // environment variables that specify the bus and the storage account for commands
}

// runNode runs a node until the test ends.
func runNode(t *testing.T, cfg config.Config) *node.Node {
	t.Helper()
	n, err := node.Open(t.Context(), cfg, node.Options{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return n
}

// startDomainHub starts an in-memory hub that requests content from the domain
// Charges.
func startDomainHub(t *testing.T) domainHub {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.BusListen, cfg.BlobListen, cfg.InMemory = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", true
	cfg.Admin.Token = operatorToken
	cfg.Domains = config.Domains{{Name: domain.Charges, Content: domain.Request}}
	n := runNode(t, cfg)
	return domainHub{n.URL(), []string{
		busVariable + "=" + strings.Replace(defaultBus, "127.0.0.1:5672", n.BusAddr().String(), 1),
		blobEndpointVariable + "=" + strings.Replace(defaultBlob, "127.0.0.1:10000", n.BlobAddr().String(), 1),
	}}
}

// startSecuredDomainHub starts a hub whose bus and storage account require TLS,
// and keys that are not the well-known ones. file contains the certificate.
func startSecuredDomainHub(t *testing.T) (hub domainHub, file string) {
	t.Helper()
	folder := t.TempDir()
	_, err := certificate.Load(folder, "localhost", "127.0.0.1")
	require.NoError(t, err)
	key := base64.StdEncoding.EncodeToString([]byte("a key of 32 bytes for a test....")) // key of the bus and of the storage account
	cfg := config.Default()
	cfg.Listen, cfg.BusListen, cfg.BlobListen, cfg.InMemory = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", true
	cfg.Admin.Token, cfg.Bus.Key, cfg.Exchange.Key = operatorToken, config.Secret(key), config.Secret(key)
	cfg.TLS.Certificate, cfg.TLS.Key = filepath.Join(folder, certificate.FileName), filepath.Join(folder, certificate.KeyName)
	n := runNode(t, cfg)
	return domainHub{n.URL(), []string{
		busVariable + "=Endpoint=sb://" + n.BusAddr().String() + "/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=" + key,
		blobConnectionVariable + "=DefaultEndpointsProtocol=https;AccountName=devstoreaccount1;AccountKey=" + key +
			";BlobEndpoint=https://" + n.BlobAddr().String() + "/devstoreaccount1",
	}}, cfg.TLS.Certificate
}

// A screen records the output of a running command.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // more is closed and replaced after each write
}

func newScreen() *screen { return &screen{more: make(chan struct{})} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.more)
	s.more = make(chan struct{})
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits until the output matches a pattern.
func (s *screen) await(t *testing.T, pattern string) {
	t.Helper()
	want := regexp.MustCompile(pattern)
	for {
		s.mu.Lock()
		more, found := s.more, want.Match(s.text.Bytes())
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-time.After(patience):
			t.Fatalf("%q has not been printed:\n%s", pattern, s)
		}
	}
}

// A runningDomain is a running "messagehub domain" command. stop stops the
// command and returns its exit status.
type runningDomain struct {
	out, err *screen
	stop     func() (status int)
}

// simulate starts messagehub domain with these flags.
func (d domainHub) simulate(t *testing.T, args ...string) runningDomain {
	t.Helper()
	s := runningDomain{out: newScreen(), err: newScreen()}
	ctx, cancel := context.WithCancel(context.Background())
	status := make(chan int, 1)
	go func() {
		status <- run(ctx, &process{args: append([]string{"messagehub", "domain"}, args...), environ: d.environ, out: s.out, err: s.err})
	}()
	s.stop = sync.OnceValue(func() int {
		cancel()
		return <-status
	})
	t.Cleanup(func() { s.stop() })
	return s
}

func TestDomain_SendsEventsAndContentAndReceivesNotices(t *testing.T) {
	hub := startDomainHub(t)
	charges := hub.simulate(t, "--send", "10", "--actors", "2", "--content-size", "100KB", "--notices")
	charges.out.await(t, `sent 10 events in `)
	const actor = "5790000000005"
	got := messagehub(t, "", "peek", "--url", hub.url, "--actor", actor, "--wait", "50s")
	require.Equal(t, 0, got.status, got.err)
	require.Len(t, got.out, 100<<10)
	require.Contains(t, got.err, "MessageType: RSM-034\n")
	id := regexp.MustCompile(`MessageId: (\S+)`).FindStringSubmatch(got.err)[1]
	require.Equal(t, 0, messagehub(t, "", "dequeue", "--url", hub.url, "--actor", actor, id).status)
	charges.out.await(t, `notice: `+actor+` dequeued `+id+`_`+actor)
	require.Equal(t, 0, charges.stop())
	require.Regexp(t, `(?m)^answered `+id+`_`+actor+` in \S+: 102400 bytes of NotifyPriceList$`, charges.out.String())
	require.True(t, strings.HasSuffix(charges.out.String(), "\n10 sent, 1 answered, 0 failed, 1 notices\n"), charges.out.String())
	require.Empty(t, charges.err.String())
}

func TestDomain_ConnectsToAHubOverTLS(t *testing.T) {
	hub, file := startSecuredDomainHub(t)
	charges := hub.simulate(t, "--send", "3", "--ca", file)
	charges.out.await(t, `sent 3 events in `)
	require.Equal(t, 0, charges.stop())
	require.Empty(t, charges.err.String())
	got := messagehub(t, "", "peek", "--url", hub.url, "--ca", file, "--actor", actorA, "--wait", "50s")
	require.Equal(t, 0, got.status, got.err)

	events := filepath.Join(t.TempDir(), "events")
	require.NoError(t, os.WriteFile(events, []byte(event(1, "")), 0o600))
	got = runWith(t, hub.environ, "send", "--servicebus", "--ca", file, events)
	require.Equal(t, result{0, "1 accepted by the bus\n", ""}, got)
	stranger := runWith(t, hub.environ, "domain", "--send", "1")
	require.Equal(t, 1, stranger.status)
	require.Contains(t, stranger.err, "certificate signed by unknown authority")
}

func TestDomain_FailsRequestsOnDemand(t *testing.T) {
	hub := startDomainHub(t)
	charges := hub.simulate(t, "--send", "1", "--fail-every", "1", "--fail-reason", "datasetnotfound", "--batch", "5")
	charges.out.await(t, `sent 1 events in `)
	got := messagehub(t, "", "peek", "--url", hub.url, "--actor", actorA, "--wait", "50s", "--timeout", "55s")
	require.Equal(t, 1, got.status)
	charges.out.await(t, `failed \S+_`+actorA+` after \S+: DatasetNotFound: this domain was told to fail`)
	require.Equal(t, 0, charges.stop())
	require.Regexp(t, `\n1 sent, 0 answered, [1-9]\d* failed, 0 notices\n$`, charges.out.String())
}

func TestDomain_SendsAtARate(t *testing.T) {
	hub := startDomainHub(t)
	began := time.Now()
	charges := hub.simulate(t, "--send", "11", "--rate", "20")
	charges.out.await(t, `sent 11 events in `)
	require.GreaterOrEqual(t, time.Since(began), 450*time.Millisecond)
	require.Equal(t, 0, charges.stop())
	require.True(t, strings.HasSuffix(charges.out.String(), "\n11 sent, 0 answered, 0 failed, 0 notices\n"), charges.out.String())
}

func TestSendToBus_KeepsTheOrder(t *testing.T) {
	hub := startDomainHub(t)
	var lines strings.Builder // ids of the events of MarketRoles, one per line, which are the content of its bundles
	for n := 1; n <= 7; n++ {
		lines.WriteString(strings.ReplaceAll(event(n, fmt.Sprintf(`,"payload":{"n":%d}`, n)), "Charges", "MarketRoles"))
	}
	send := func(batch string) result {
		var out, errs bytes.Buffer
		status := run(t.Context(), &process{
			args:    []string{"messagehub", "send", "--servicebus", "--batch", batch, "-"},
			environ: hub.environ, in: strings.NewReader(lines.String()), out: &out, err: &errs,
		})
		return result{status, out.String(), errs.String()}
	}
	require.Equal(t, result{0, "7 accepted by the bus\n", ""}, send("3"))
	require.Equal(t, result{0, "7 accepted by the bus\n", ""}, send("1"), "sending it again is safe")
	var got []string
	for len(got) < 7 {
		peeked := messagehub(t, "", "peek", "--url", hub.url, "--actor", actorA, "--wait", "50s")
		require.Equal(t, 0, peeked.status, peeked.err)
		for _, found := range regexp.MustCompile(`"payload":\{"n":(\d)\}`).FindAllStringSubmatch(peeked.out, -1) {
			got = append(got, found[1])
		}
		id := regexp.MustCompile(`MessageId: (\S+)`).FindStringSubmatch(peeked.err)[1]
		require.Equal(t, 0, messagehub(t, "", "dequeue", "--url", hub.url, "--actor", actorA, id).status)
	}
	require.Equal(t, []string{"1", "2", "3", "4", "5", "6", "7"}, got)
}

func TestSendToBus_ReportsABadLineBeforeSending(t *testing.T) {
	hub := startDomainHub(t)
	var out, errs bytes.Buffer
	status := run(t.Context(), &process{
		args: []string{"messagehub", "send", "--servicebus", "-"}, environ: hub.environ,
		in: strings.NewReader(event(1, "") + "{}\n"), out: &out, err: &errs,
	})
	require.Equal(t, result{
		1, "0 accepted by the bus\n",
		"messagehub: line 2: id: missing; recipient: missing; origin: missing; contentType: missing; documentType: missing; supportsBundling: missing; weight: missing\n",
	}, result{status, out.String(), errs.String()})
}

// unusedAddress returns a loopback address at which no process listens.
func unusedAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func TestDomain_ReportsAnUnreachableBusOrAccountImmediately(t *testing.T) {
	hub, nowhere := startDomainHub(t), unusedAddress(t)
	nobodysBus := strings.Replace(defaultBus, "127.0.0.1:5672", nowhere, 1)
	bus, _ := strings.CutPrefix(hub.environ[0], busVariable+"=")
	noBus := "messagehub: no Service Bus listens at " + nowhere + "; start messagehub serve, or name another with --servicebus=CONNECTION or MESSAGEHUB_SERVICEBUS_CONNECTION\n"
	for _, tc := range []struct {
		args []string
		want result
	}{
		{[]string{"send", "--servicebus=" + nobodysBus, "-"}, result{1, "", noBus}},
		{[]string{"domain", "--servicebus", nobodysBus}, result{1, "", noBus}},
		{
			[]string{"domain", "--servicebus", bus, "--blob", "http://" + nowhere + "/devstoreaccount1"},
			result{1, "", "messagehub: no storage account listens at http://" + nowhere + "/devstoreaccount1; start messagehub serve, or name another with --blob or MESSAGEHUB_BLOB_ENDPOINT\n"},
		},
	} {
		require.Equal(t, tc.want, messagehub(t, event(1, ""), tc.args...), tc.args)
	}
	blob, _ := strings.CutPrefix(hub.environ[1], blobEndpointVariable+"=")
	require.Equal(t, result{1, "", "messagehub: the account " + blob + " has no container elsewhere; name the one that the hub shares with --exchange\n"},
		messagehub(t, "", "domain", "--servicebus", bus, "--blob", blob, "--exchange", "elsewhere"))
	wrongKey := "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=d3Jvbmc=;BlobEndpoint=" + blob + ";"
	require.Equal(t, result{1, "", "messagehub: the account " + blob + " refused access to the container messagehub-exchange: 403 AuthenticationFailed\n"},
		messagehub(t, "", "domain", "--servicebus", bus, "--blob", wrongKey))
	got := messagehub(t, "", "domain", "--servicebus", bus, "--blob", blob, "--name", "Weather")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "messagehub: the hub has no queues for the domain Weather; ")
}
