package webhook_test

import (
	"context"
	"errors"
	"net/netip"
	parseurl "net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/domain"
)

func TestCheckURL_ReportsWhyAURLMayNotBeCalled(t *testing.T) {
	n := newNetwork(t)
	for host, addresses := range map[string][]string{
		"public.example": {"8.8.8.8", "2a00::1"}, "private.example": {"10.0.0.1"}, "half.example": {"8.8.8.8", "127.0.0.1"},
		"mapped.example": {"::ffff:127.0.0.1"}, "localhost": {"127.0.0.1"}, "host_1.example": {"::ffff:8.8.8.8"},
	} {
		for _, a := range addresses {
			n.hosts[host] = append(n.hosts[host], netip.MustParseAddr(a))
		}
	}
	c := webhook.New(webhook.Options{Dial: n.dial, LookUp: n.lookUp})
	defer c.Close()
	for url, want := range map[string]string{
		"https://public.example/a?b=c": "", "https://public.example:8443": "", "https://8.8.8.8": "", "https://[2a00::1]": "", "https://host_1.example": "",

		"":                              "want http or https",
		"/hook":                         "want http or https",
		"hook":                          "want http or https",
		"//public.example":              "want http or https",
		"wss://public.example":          "want http or https",
		"file:///etc/passwd":            "want http or https",
		"https://":                      "want a host",
		"https:public.example":          "want a host",
		"https://:443":                  "want a host",
		"https://me:pw@public.example":  "want no credentials",
		"https://me@public.example":     "want no credentials",
		"https://public.example#a":      "want no fragment",
		"http://public.example":         "want https",
		"https://public.example:0":      "want a port",
		"https://public.example:65536":  "want a port",
		"https://public.example:x":      "want a URL",
		"https://unknown.example":       "the host was not found",
		"https://private.example":       "the host has an address that may not be called",
		"https://half.example":          "the host has an address that may not be called",
		"https://mapped.example":        "the host has an address that may not be called",
		"https://localhost":             "the host has an address that may not be called",
		"https://127.0.0.1":             "127.0.0.1 may not be called",
		"https://169.254.169.254/":      "169.254.169.254 may not be called",
		"https://168.63.129.16/":        "168.63.129.16 may not be called",
		"https://[::1]":                 "::1 may not be called",
		"https://[::ffff:127.0.0.1]":    "::ffff:127.0.0.1 may not be called",
		"https://[::ffff:7f00:1]":       "::ffff:127.0.0.1 may not be called",
		"https://[64:ff9b::7f00:1]":     "64:ff9b::7f00:1 may not be called",
		"https://[2002:7f00:1::]":       "2002:7f00:1:: may not be called",
		"https://[2001:0:7f00:1::]":     "2001:0:7f00:1:: may not be called",
		"https://[fe80::1%25eth0]":      "want an address without a zone",
		"https://2130706433":            "want an IPv4 address",
		"https://0x7f.1":                "want an IPv4 address",
		"https://0177.0.0.1":            "want an IPv4 address",
		"https://127.1":                 "want an IPv4 address",
		"https://0x7f000001.":           "want an IPv4 address",
		"https://pub..example":          "want a host name",
		"https://bücher.example":        "want a host in ASCII",
		"https://①②⑦.⓪.⓪.①":             "want a host in ASCII",
		"https://pub%6cic.example:443/": "want a URL",
	} {
		err := c.CheckURL(t.Context(), url)
		if want == "" {
			require.NoError(t, err, url)
			continue
		}
		require.ErrorContains(t, err, "/callback_url: "+want, url)
		if strings.HasPrefix(want, "the host has an address") {
			require.NotContains(t, err.Error(), "10.0.0.1", "the address of %s", url)
			require.NotContains(t, err.Error(), "127.0.0.1", "the address of %s", url)
		}
		require.Equal(t, domain.Invalid, domain.KindOf(err), url)
	}
	require.Empty(t, n.dials)
}

func TestCheckURL_IsUnavailableIfALookUpFails(t *testing.T) {
	c := webhook.New(webhook.Options{LookUp: func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no answer") }})
	defer c.Close()
	require.Equal(t, domain.Unavailable, domain.KindOf(c.CheckURL(t.Context(), "https://public.example")))
}

func TestCheckURL_AllowsWhatIsConfigured(t *testing.T) {
	n := newNetwork(t)
	c := n.client(webhook.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	require.NoError(t, c.CheckURL(t.Context(), "http://127.0.0.1:8080/hook"))
	require.Error(t, c.CheckURL(t.Context(), "http://10.0.0.1/hook"))
}

func FuzzCheckURL(f *testing.F) {
	for _, url := range []string{"https://8.8.8.8", "https://a:b@c", "https://[::ffff:127.0.0.1%25a]:1", "http://0x7f.1/\x00"} {
		f.Add(url)
	}
	c := webhook.New(webhook.Options{LookUp: func(_ context.Context, host string) ([]netip.Addr, error) {
		if strings.HasSuffix(host, "private.example") {
			return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
	}})
	f.Cleanup(c.Close)
	f.Fuzz(func(t *testing.T, url string) {
		if err := c.CheckURL(t.Context(), url); err != nil {
			require.Equal(t, domain.Invalid, domain.KindOf(err))
			require.True(t, strings.HasPrefix(err.Error(), "/callback_url: "))
			return
		}
		u, err := parseurl.Parse(url)
		require.NoError(t, err)
		require.Equal(t, "https", u.Scheme)
		require.Nil(t, u.User)
		require.False(t, strings.HasSuffix(u.Hostname(), "private.example"))
	})
}
