package config_test

import (
	"encoding/base64"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
)

func TestRedact_FindsKeysOfEveryLength(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	for _, tc := range []struct {
		bytes  int
		encode func([]byte) string
		missed int // maximum number of keys out of 1000 that may remain undetected; only padding is a reliable sign
	}{
		{32, base64.StdEncoding.EncodeToString, 0},
		{64, base64.StdEncoding.EncodeToString, 0},
		{16, base64.StdEncoding.EncodeToString, 0},
		{32, func(b []byte) string { return url.QueryEscape(base64.StdEncoding.EncodeToString(b)) }, 0},
		{48, base64.StdEncoding.EncodeToString, 60},
		{64, base64.RawStdEncoding.EncodeToString, 60},
	} {
		missed := 0
		for range 1000 {
			key := make([]byte, tc.bytes)
			_, _ = random.Read(key)
			text := tc.encode(key)
			shown, has := config.Redact("dial " + text + ": refused")
			if !has || strings.Contains(shown, text) {
				missed++
			}
		}
		require.LessOrEqual(t, missed, tc.missed, "of 1000 keys of %d bytes", tc.bytes)
	}
}

func TestRedact_KeepsTextsWithoutSecrets(t *testing.T) {
	for _, text := range []string{
		"", "127.0.0.1:8080", "[::1]:8080", "messagehub-data", "/var/lib/messagehub", "NAME.servicebus.windows.net",
		"/tmp/TestReverseProxy_GrantsNoOperatorRightsinsecure=false1391829401/001", "/tmp/TestPeek_ReturnsTheOpenBundleUntilItIsDequeued3127712345/001/data",
		"/home/KimJensen2/Projects/EnergyHub2026/TestData/RunsOfMay3/a", "--servicebusFifoQueueOfTheHub=x",
		"/tmp/TestNoSecretIsEverTold123456789/001/data", `C:\ProgramData\MessageHub\Data`,
		"/var/lib/docker/volumes/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08/_data",
		"https://account.documents.azure.com:443/", "http://127.0.0.1:10000/devstoreaccount1",
		"bundle 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41 is open", "urn:messagehub:request:YKAB2SP4DFYGV5GM6ILCPQCICH",
		"/Users/JaneDoe/Library/ApplicationSupport/MessageHub2/Data3/ForProduction",
		"want a connection string, such as Endpoint=sb://NAME.servicebus.windows.net/;SharedAccessKeyName=…;SharedAccessKey=…",
		"TimeSeries, MeteringPoints, MarketRoles", "a secret, got nothing", "MESSAGEHUB_SERVICEBUS_CONNECTION=",
	} {
		shown, has := config.Redact(text)
		require.False(t, has, text)
		require.Equal(t, text, shown)
	}
}

func TestRedact_HidesSecretsWhereverTheyAre(t *testing.T) {
	for text, want := range map[string]string{
		`x: Endpoint=sb://n/;SharedAccessKeyName=k;SharedAccessKey=s3cret;EntityPath=q`: `x: Endpoint=sb://n/;SharedAccessKeyName=k;SharedAccessKey=[redacted];EntityPath=q`,
		`accountkey="s3cret"`:                                       `accountkey=[redacted]"`,
		`parse "http://kim:s3/cr?et@host:1/a": invalid port`:        `parse "http://[redacted]@host:1/a": invalid port`,
		`https://a.blob.core.windows.net/c?sv=1&sig=s3cret%3D&se=2`: `https://a.blob.core.windows.net/c?sv=1&sig=[redacted]&se=2`,
		`token messagehub-YKAB2SP4DFYGV5GM6ILCPQCICH`:               `token [redacted]`,
		`Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln`:          `Bearer [redacted]`,
	} {
		shown, has := config.Redact(text)
		require.True(t, has, text)
		require.Equal(t, want, shown)
		again, _ := config.Redact(shown)
		require.Equal(t, shown, again, "once is enough")
	}
}
