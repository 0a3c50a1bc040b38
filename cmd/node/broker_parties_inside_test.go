package node

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
)

const setupFile = `broker:
  producers: [{id: shop, name: Shop, token-env: SHOP}]
  channels: [{id: prices, token-env: PRICES}]
  consumers:
    - {channel: prices, id: billing, callback-url: 'https://billing.example/', token-env: BILLING}
    - {channel: prices, id: audit, callback-url: 'https://audit.example/', token-env: AUDIT}
`

var setupEnviron = []string{"SHOP=hush-1", "PRICES=hush-2", "BILLING=hush-3", "AUDIT=hush-4"}

// setupConfig returns the configuration specified by a YAML text and an
// environment.
func setupConfig(t *testing.T, text string, environ []string) *config.Config {
	t.Helper()
	b, err := config.ReadBroker(strings.NewReader(text), "hub.yaml", environ)
	require.NoError(t, err)
	cfg := config.Default()
	cfg.Broker = *b
	return &cfg
}

// A setupWorld is an account in which several nodes store the parties of their
// configurations.
type setupWorld struct {
	*testing.T
	account *accounttest.Account
	keys    *subscribe.Keyring
	log     bytes.Buffer
	options broker.Options
}

func newSetupWorld(t *testing.T) *setupWorld {
	t.Helper()
	keys, err := subscribe.NewKeyring(subscribe.NewKey())
	require.NoError(t, err)
	return &setupWorld{T: t, keys: keys, account: accounttest.New(t, embedded.Options{}, pushstore.Containers())}
}

// node returns the brokerSetup of a new node. retries is the number of retries
// that all of its store requests share: 0 selects the default, a negative
// number none.
func (w *setupWorld) node(cfg *config.Config, retries int) *brokerSetup {
	documents := pushstore.New(w.account.Connect(), w.account.Content, pushstore.Options{Retries: retries})
	ports := broker.Ports{Parties: documents, Streams: documents, Cursors: documents, Shards: documents, Content: w.account.Content}
	return newBrokerSetup(cfg, broker.New(ports, w.keys, w.options), &Options{
		Logger: slog.New(slog.NewTextHandler(&w.log, nil)), Random: func() uint64 { return 0 },
	})
}

// stored returns all stored parties by description. It checks that each
// consumer has a cursor.
func (w *setupWorld) stored() map[string]*repository.Party {
	w.Helper()
	documents := pushstore.New(w.account.Connect(), w.account.Content, pushstore.Options{})
	channel, err := domain.Channels.Parse("prices")
	require.NoError(w, err)
	found := make(map[string]*repository.Party)
	for _, list := range []domain.PartyList{domain.Producers, domain.Channels, channel.Consumers()} {
		parties, err := documents.Parties(w.Context(), list, "", 100)
		require.NoError(w, err)
		for _, p := range parties {
			found[p.ID.Describe()] = p
			if p.ID.IsConsumer() {
				_, err := documents.Standing(w.Context(), p.ID.Cursor())
				require.NoError(w, err, p.ID)
			}
		}
	}
	return found
}

var setupParties = []string{"producer shop", "channel prices", "consumer prices/billing", "consumer prices/audit"}

func namesOf(found map[string]*repository.Party) (names []string) {
	for name := range found {
		names = append(names, name)
	}
	return names
}

func TestBrokerSetup_StoresEachConfiguredPartyOnce(t *testing.T) {
	w := newSetupWorld(t)
	cfg := setupConfig(t, setupFile, setupEnviron)
	w.node(cfg, 0).storeAllOnce(t.Context())
	first := w.stored()
	require.ElementsMatch(t, setupParties, namesOf(first))
	require.Equal(t, "Shop", first["producer shop"].Label)
	require.Equal(t, "https://billing.example/", first["consumer prices/billing"].CallbackURL)
	require.Equal(t, 4, strings.Count(w.log.String(), "created a producer"))
	require.NotContains(t, w.log.String(), "hush")

	s := w.node(cfg, 0)
	s.storeAllOnce(t.Context())
	require.Equal(t, first, w.stored(), "what is as the configuration says is not changed")
	require.Empty(t, s.warnings())

	w.node(setupConfig(t, strings.Replace(setupFile, "billing.example", "other.example", 1), append(setupEnviron, "AUDIT=hush-5")), 0).storeAllOnce(t.Context())
	then := w.stored()
	require.Equal(t, "https://other.example/", then["consumer prices/billing"].CallbackURL)
	require.NotEqual(t, first["consumer prices/audit"].Token, then["consumer prices/audit"].Token)
	require.Equal(t, first["channel prices"], then["channel prices"])
	require.Len(t, then, 4)
}

// A node crashes at each of its store requests in turn while it stores its
// parties. The next node must store the remaining parties.
func TestBrokerSetup_SurvivesACrashAtEachRequest(t *testing.T) {
	for _, last := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		for n := 1; ; n++ {
			w := newSetupWorld(t)
			cfg := setupConfig(t, setupFile, setupEnviron)
			w.account.Transport.CrashAt(n, last)
			w.node(cfg, -1).storeAllOnce(t.Context())
			crashed := w.account.Transport.Fired() > 0
			w.account.Transport.Break(nil)
			s := w.node(cfg, 0)
			s.storeAllOnce(t.Context())
			require.ElementsMatch(t, setupParties, namesOf(w.stored()), "crash at request %d", n)
			require.Empty(t, s.warnings(), "crash at request %d", n)
			if !crashed {
				require.Greater(t, n, 10)
				break
			}
		}
	}
}

func TestBrokerSetup_OfManyNodesStoresEachPartyOnce(t *testing.T) {
	w := newSetupWorld(t)
	for round := range 5 {
		cfg := setupConfig(t, strings.ReplaceAll(setupFile, ".example/", fmt.Sprintf(".example/%d", round)), append(setupEnviron, fmt.Sprintf("PRICES=hush-%d", round)))
		nodes := make([]*brokerSetup, 8)
		for i := range nodes {
			nodes[i] = w.node(cfg, 0)
			nodes[i].logger = slog.New(slog.DiscardHandler)
		}
		var running sync.WaitGroup
		for _, s := range nodes {
			running.Go(func() {
				s.storeAllOnce(t.Context())
				s.retryPending(t.Context()) // retryPending returns immediately if no party is pending
			})
		}
		running.Wait()
		found := w.stored()
		require.ElementsMatch(t, setupParties, namesOf(found))
		require.Equal(t, fmt.Sprintf("https://audit.example/%d", round), found["consumer prices/audit"].CallbackURL)
		for _, s := range nodes {
			require.Empty(t, s.warnings())
		}
	}
}

func TestBrokerSetup_RetriesWhileTheStoreIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSetupWorld(t)
		w.account.Transport.Break(func(_ int, r *http.Request) faulty.Fault { return faulty.Unavailable })
		s := w.node(setupConfig(t, setupFile, setupEnviron), -1)
		began := time.Now()
		s.storeAllOnce(t.Context())
		require.Less(t, time.Since(began), setupTimeout+time.Second)
		require.Equal(t, 4, s.countPending())
		require.Contains(t, s.warnings()[0].Reason, "0 cannot be stored, and 4 are not stored yet")

		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.retryPending(ctx) })
		<-time.After(10 * time.Minute) // time of the synctest bubble
		require.Equal(t, 4, s.countPending())
		require.Equal(t, 4, strings.Count(w.log.String(), "from the configuration yet"), "each is logged once")
		require.NotContains(t, w.log.String(), "level=ERROR")

		w.account.Transport.Break(nil)
		running.Wait() // retryPending ends after at most one more pause
		require.ElementsMatch(t, setupParties, namesOf(w.stored()))
		require.Empty(t, s.warnings())
		cancel()
		s.retryPending(ctx)
	})
}

func TestBrokerSetup_StopsWithItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSetupWorld(t)
		w.account.Transport.Break(func(int, *http.Request) faulty.Fault { return faulty.Unavailable })
		s := w.node(setupConfig(t, setupFile, setupEnviron), -1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.retryPending(ctx)
		require.Equal(t, 4, s.countPending())
	})
}

// A permanent fault must be logged once, and must not prevent other parties
// from being stored.
func TestBrokerSetup_ReportsWhatCannotBeStored(t *testing.T) {
	w := newSetupWorld(t)
	w.options.CheckURL = func(_ context.Context, url string) error {
		if strings.Contains(url, "inside") {
			return domain.Errorf(domain.Invalid, "callbackUrl: the host has an address that may not be called")
		}
		return nil
	}
	s := w.node(setupConfig(t, setupFile+`
    - {channel: prices, id: inside, callback-url: 'https://inside.example/', token-env: AUDIT}
    - {channel: unknown, id: late, callback-url: 'https://late.example/', token-env: AUDIT}
    - {channel: prices, id: tokenless, callback-url: 'https://late.example/'}
    - {channel: prices, id: unset, callback-url: 'https://late.example/', token-env: UNSET}
    - {channel: prices, id: gone, callback-url: 'https://late.example/', token-file: /nonexistent/token}
    - {channel: prices, id: blank, callback-url: 'https://late.example/', token-env: BLANK}
`, append(setupEnviron, "BLANK=hush hush")), 0)
	s.storeAllOnce(t.Context())
	s.retryPending(t.Context())
	require.ElementsMatch(t, setupParties, namesOf(w.stored()))
	require.Contains(t, s.warnings()[0].Reason, "6 cannot be stored, and 0 are not stored yet")
	for _, want := range []string{
		`party="consumer prices/inside" error="callbackUrl: the host has an address that may not be called"`,
		`party="consumer unknown/late" error="there is no channel unknown"`,
		`party="consumer prices/tokenless" error="token: missing; the hub generates none, because it never shows tokens"`,
		`party="consumer prices/unset" error="token-env: the variable UNSET is not set"`,
		`party="consumer prices/gone" error="token-file: open /nonexistent/token: `,
		`party="consumer prices/blank" error="token: want printable ASCII without blanks"`,
	} {
		require.Contains(t, w.log.String(), want)
	}
	require.Equal(t, 6, strings.Count(w.log.String(), "level=ERROR"))
	require.NotContains(t, w.log.String(), "hush")
}

func TestANode_StoresThePartiesOfItsConfigurationBeforeItServes(t *testing.T) {
	cfg := setupConfig(t, setupFile+"    - {channel: prices, id: inside, callback-url: 'https://10.0.0.1/', token-env: AUDIT}\n", setupEnviron)
	cfg.Listen, cfg.InMemory, cfg.BusListen, cfg.BlobListen, cfg.Admin.Token = "127.0.0.1:0", true, "", "", "a-token-for-operators"
	lookUp := func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
	}
	var log bytes.Buffer
	n, err := Open(t.Context(), *cfg, Options{LookUp: lookUp, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Close()) }()
	producers, _, err := n.push.broker.ListParties(t.Context(), &broker.Credentials{IsAdmin: true}, domain.Producers, "", 10)
	require.NoError(t, err)
	require.Len(t, producers, 1)
	require.Equal(t, "broker-configuration", n.warnings()[0].Name)
	require.Contains(t, log.String(), `party="consumer prices/inside"`)
	require.NotContains(t, log.String(), "hush")
}

func TestANodeWithoutABroker_SaysThatItStoresNoParties(t *testing.T) {
	var log bytes.Buffer
	s := newBrokerSetup(setupConfig(t, setupFile, nil), nil, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.storeAllOnce(t.Context())
	require.Contains(t, s.warnings()[0].Reason, "4 cannot be stored")
	require.Contains(t, log.String(), "the node has no broker")
}
