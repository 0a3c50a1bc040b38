package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
)

const brokerFile = `
broker:
  max-retry: 3
  producers:
    - {id: shop, name: Shop, token-env: SHOP_TOKEN}
  channels:
    - id: prices
      token-file: prices.token
    - id: open
  consumers:
    - channel: prices
      id: billing
      callback-url: https://example.org/hook
      token: whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD
`

func TestBrokerParties_AreReadWithTheirTokens(t *testing.T) {
	environ := []string{"SHOP_TOKEN=from-the-environment"}
	cfg, err := load(t, brokerFile, environ)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("prices.token", []byte("\n from-a-file\r\n"), 0o600))
	b := &cfg.Broker
	require.Equal(t, 3, b.MaxRetry)
	var got []string
	for _, p := range b.Parties() {
		token, ok, err := p.Token.Read()
		require.NoError(t, err)
		got = append(got, fmt.Sprint(p.ID.List(), " ", p.ID, " ", p.Name, " ", p.CallbackURL, " ", token.Reveal(), " ", ok))
	}
	require.Equal(t, []string{
		"producers shop Shop  from-the-environment true", "channels prices   from-a-file true", "channels open    false",
		"consumers|prices billing  https://example.org/hook whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD true",
	}, got)

	for _, text := range []string{cfg.String(), fmt.Sprint(cfg.LogValue()), fmt.Sprintf("%v %+v %#v", b.Consumers, b.Producers, b.Channels)} {
		require.NotContains(t, text, "whsec_")
		require.NotContains(t, text, "from-the-environment")
	}
}

// Load must succeed if the tokens of the broker's parties are unavailable,
// because commands that only call a hub do not have them.
func TestLoad_DoesNotNeedTheTokensOfBrokerParties(t *testing.T) {
	cfg, err := load(t, brokerFile, nil)
	require.NoError(t, err)
	_, _, err = cfg.Broker.Producers[0].Token.Read()
	require.EqualError(t, err, "token-env: the variable SHOP_TOKEN is not set")
	_, _, err = cfg.Broker.Channels[0].Token.Read()
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, text := range []string{"", " \n", strings.Repeat("x", 5000)} {
		require.NoError(t, os.WriteFile("prices.token", []byte(text), 0o600))
		_, _, err = cfg.Broker.Channels[0].Token.Read()
		require.EqualError(t, err, "token-file: want a token alone in prices.token")
	}
}

func TestAFileWithATokenOfABrokerParty_MustBePrivate(t *testing.T) {
	for text, warns := range map[string]bool{brokerFile: true, "broker: {channels: [{id: a, token-env: T}]}": false} {
		name := write(t, text)
		require.NoError(t, os.Chmod(name, 0o644))
		cfg, err := config.Load(config.Inputs{File: name, Environ: []string{"T=x"}})
		require.NoError(t, err)
		require.Equal(t, warns, len(cfg.Warnings()) > 0)
	}
}

func TestInvalidBrokerParties_AreNamedWithTheirPlace(t *testing.T) {
	const consumer = "channel: prices, id: billing, callback-url: 'https://example.org/'"
	for entry, want := range map[string]string{
		"channels: [{name: x}]":                               "broker.channels (hub.yaml line 1): line 1: it has no id; choose one",
		"channels: [x]":                                       "broker.channels (hub.yaml line 1): line 1: want an entry such as {id: prices, name: Prices of today, token-file: prices.token}",
		"channels: {id: x}":                                   "broker.channels (hub.yaml line 1): want a list such as [{id: prices, name: Prices of today, token-file: prices.token}]",
		"channels: [{id: a b}]":                               `broker.channels (hub.yaml line 1): line 1: id: channel id: want only A-Z a-z 0-9 . _ -, got "a b"`,
		"channels: [{id: a}, {id: b}, {id: a}]":               "broker.channels (hub.yaml line 1): line 1: a stands in the list twice; keep one",
		"channels: [{id: a, id: b}]":                          "broker.channels (hub.yaml line 1): line 1: id stands there twice; keep one",
		"channels: [{id: a, name: [x]}]":                      "broker.channels (hub.yaml line 1): line 1: name: want a text",
		"channels: [{id: a, token: }]":                        "broker.channels (hub.yaml line 1): line 1: token: want a text",
		"channels: [{id: a, token: hush, token-env: T}]":      "broker.channels (hub.yaml line 1): line 1: a: want one of token-file, token-env and token",
		"channels: [{id: a, token-env: MESSAGEHUB_T}]":        "broker.channels (hub.yaml line 1): line 1: a: token-env: want the name of a variable that does not begin with MESSAGEHUB_, which the settings of the hub do",
		"channels: [{id: a, token-env: $T}]":                  "broker.channels (hub.yaml line 1): line 1: a: token-env: want the name of a variable, of letters, digits and _",
		"channels: [{id: a, tokn: hush}]":                     "broker.channels (hub.yaml line 1): line 1: tokn: no such key; did you mean token?",
		"producers: [{id: a, callback-url: 'https://a.b/'}]":  "broker.producers (hub.yaml line 1): line 1: callback-url: no such key; known are id, name, token, token-env, token-file",
		"channels: [{id: a, name: AccountKey=hush}]":          "broker.channels (hub.yaml line 1): line 1: name: the value holds a secret, so it is not shown; a token belongs in token-file or token-env",
		"consumers: [{id: a, callback-url: 'https://a.b/'}]":  "broker.consumers (hub.yaml line 1): line 1: it has no channel; give the id of one",
		"consumers: [{channel: a b, id: a}]":                  `broker.consumers (hub.yaml line 1): line 1: channel: channel id: want only A-Z a-z 0-9 . _ -, got "a b"`,
		"consumers: [{channel: a, id: b}]":                    "broker.consumers (hub.yaml line 1): line 1: a/b has no callback-url; give the URL that the consumer is called at",
		"consumers: [{channel: a, id: b, callback-url: /x}]":  `broker.consumers (hub.yaml line 1): line 1: callback-url of a/b: want http or https, got "/x"`,
		"consumers: [{" + consumer + "}, {" + consumer + "}]": "broker.consumers (hub.yaml line 1): line 1: prices/billing stands in the list twice; keep one",
		"consumers: [{" + consumer + "}], max-retry: 5, x: 5": "broker.x (hub.yaml line 1): no such key; known are broker.channels, broker.consumers, broker.fail-safe, broker.max-retry, broker.producers, broker.rational-delay, broker.retrigger-url, broker.retry-delay, broker.token-header",
	} {
		_, err := load(t, "broker: {"+entry+"}", nil)
		require.EqualError(t, err, want)
		require.NotContains(t, err.Error(), "hush")
	}
	for _, entry := range []string{"[AccountKey=hush]", "[{'AccountKey=hush': x}]", "[{id: AccountKey=hush}]", "[{id: a, callback-url: 'https://u:hush@a.b/'}]", "AccountKey=hush"} {
		_, err := load(t, "broker: {channels: "+entry+"}", nil)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hush")
		_, err = load(t, "", []string{"MESSAGEHUB_BROKER_CHANNELS=" + entry})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hush")
		_, err = config.ReadBroker(strings.NewReader("broker: {channels: "+entry+"}"), "hub.yaml", nil)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hush")
	}
	_, err := load(t, "", []string{"MESSAGEHUB_BROKER_CHANNELS=nothing"})
	require.EqualError(t, err, "broker.channels (MESSAGEHUB_BROKER_CHANNELS): want a list such as [{id: prices, name: Prices of today, token-file: prices.token}]")
}

func TestReadBroker_ReadsAConfigurationFile(t *testing.T) {
	name := filepath.Join("folder", "hub.yaml")
	b, err := config.ReadBroker(strings.NewReader("listen: 127.0.0.1:1\n"+brokerFile), name, []string{"SHOP_TOKEN=x"})
	require.NoError(t, err)
	require.Len(t, b.Parties(), 4)
	require.Equal(t, filepath.Join("folder", "prices.token"), b.Channels[0].Token.File)
	token, _, err := b.Producers[0].Token.Read()
	require.NoError(t, err)
	require.Equal(t, "x", token.Reveal())

	for text, want := range map[string]string{
		"":                             "hub.yaml: it has no producers, channels or consumers; want broker: {channels: [{id: …, token-file: …}]}",
		"listen: 127.0.0.1:1":          "hub.yaml: it has no producers, channels or consumers; want broker: {channels: [{id: …, token-file: …}]}",
		"brokr: {channels: [{id: a}]}": "brokr (hub.yaml line 1): no such key; did you mean broker.channels?",
		"broker: [":                    "hub.yaml: yaml: line 1: did not find expected node content; messagehub help configuration has an example",
	} {
		_, err := config.ReadBroker(strings.NewReader(text), "hub.yaml", nil)
		require.Error(t, err, text)
		require.Contains(t, err.Error(), strings.SplitN(want, ";", 2)[0])
	}
	_, err = config.ReadBroker(strings.NewReader(strings.Repeat("#", 5<<20)), "hub.yaml", nil)
	require.EqualError(t, err, "hub.yaml: want at most 4194304 bytes")
}
