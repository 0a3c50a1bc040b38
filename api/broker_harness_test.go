package api_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository/memory"
)

// withBroker configures a server with an in-memory broker that stores messages but does not deliver
// them.
func withBroker(t *testing.T, change ...func(*broker.Ports, *broker.Options)) func(*api.Options, *hub.Options) {
	t.Helper()
	keys, err := subscribe.NewKeyring(subscribe.NewKey())
	require.NoError(t, err)
	cursors := memory.NewCursors(time.Now)
	ports := broker.Ports{Parties: memory.NewParties(), Streams: memory.NewStreams(time.Hour, time.Now), Cursors: cursors, Shards: cursors}
	opts := broker.Options{CheckURL: refusePrivateURLs, FetchTimeout: time.Millisecond}
	for _, c := range change {
		c(&ports, &opts)
	}
	return func(o *api.Options, _ *hub.Options) { o.Broker = broker.New(ports, keys, opts) }
}

const formType = "application/x-www-form-urlencoded"

// Headers that authenticate each kind of caller.
var (
	asOperator = []string{"X-Broker-Admin-Token", token}
	asProducer = []string{"X-Broker-Producer-ID", "maker", "X-Broker-Producer-Token", "of-maker", "X-Broker-Channel-Token", "of-prices"}
	asReader   = []string{"X-Broker-Channel-Token", "of-prices"}
	asConsumer = []string{"X-Broker-Consumer-Token", "of-shop"}
)

// put creates or changes a party as an operator. fields are names and values alternately.
func (f *hubFixture) put(path string, fields ...string) domainAnswer {
	f.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return f.do("PUT", "/broker"+path, form.Encode(), append([]string{"Content-Type", formType}, asOperator...)...)
}

// putShop creates the producer "maker", the channel "prices" and its consumer
// "shop".
func (f *hubFixture) putShop() {
	f.t.Helper()
	f.put("/producer/maker", "token", "of-maker").wants(201)
	f.put("/channel/prices", "token", "of-prices").wants(201)
	f.put("/channel/prices/consumer/shop", "token", "of-shop", "callbackUrl", "https://shop.example/hook").wants(201)
}

// broadcast sends a message and returns its path.
func (f *hubFixture) broadcast(payload string, headers ...string) string {
	f.t.Helper()
	a := f.do("POST", "/broker/channel/prices/broadcast", payload, append(append([]string{"Content-Type", ""}, asProducer...), headers...)...)
	path := a.wants(201).header.Get("Location")
	require.True(f.t, strings.HasPrefix(path, "/broker/channel/prices/message/"), path)
	return path
}

// show requests the document at a path as the caller as, and returns it.
func (f *hubFixture) show(path string, as []string) map[string]any {
	f.t.Helper()
	return decoded(f.t, f.do("GET", path, "", as...).wants(200).body)
}

// idOf returns the id of the message at a path.
func idOf(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// idsOf returns the ids of the elements of a JSON list.
func idsOf(list any) (ids []string) {
	for _, one := range list.([]any) {
		ids = append(ids, one.(map[string]any)["id"].(string))
	}
	return ids
}

// errOwnHeader is the error for metadata that would replace a header that the hub sets.
var errOwnHeader = domain.Errorf(domain.Invalid, "/headers/X-Broker-Channel-Token: the hub sets it")

// errPrivate is the error for the URL of a private address.
var errPrivate = domain.Errorf(domain.Invalid, "callbackUrl: the address is private")
