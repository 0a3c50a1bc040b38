package webhook

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// callbackPointer is the JSON pointer to the URL in a subscription.
const callbackPointer = "/callback_url"

// CheckURL returns an Invalid error, which starts with a JSON pointer, unless text is a URL that
// may be called: the guard must allow all addresses of its host. Addresses may change later, so
// each call checks them again. CheckURL fails with Unavailable if it cannot look up the addresses.
func (c *Client) CheckURL(ctx context.Context, text string) error {
	u, err := c.parseURL(text)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	addresses, err := c.resolveHost(ctx, u.Hostname())
	if err != nil {
		if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
			return domain.Errorf(domain.Invalid, "%s: the host was not found", callbackPointer)
		}
		return domain.Errorf(domain.Unavailable, "%s: the host could not be looked up; try again", callbackPointer)
	}
	for _, a := range addresses {
		if err := c.guard.Check(a); err != nil {
			if _, parseErr := netip.ParseAddr(u.Hostname()); parseErr != nil {
				// The error does not contain the address, which may come from a DNS zone that only
				// the hub can read.
				return domain.Errorf(domain.Invalid, "%s: the host has an address that may not be called; use a host with public addresses, "+
					"or have operators add the range of the address to the setting push.allow", callbackPointer)
			}
			return domain.Errorf(domain.Invalid, "%s: %w", callbackPointer, err)
		}
	}
	return nil
}

// parseURL parses the URL of a receiver, and checks everything except the addresses of its host.
func (c *Client) parseURL(text string) (*url.URL, error) {
	s := domain.Subscription{CallbackURL: text}
	s.SetDefaults()
	if err := s.Check(); err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, domain.Errorf(domain.Invalid, "%s: want a URL", callbackPointer)
	}
	if u.Scheme != "https" && !c.opts.AllowHTTP {
		return nil, domain.Errorf(domain.Invalid, "%s: want https; operators allow http with the setting push.insecure-http", callbackPointer)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, domain.Errorf(domain.Invalid, "%s: want a port from 1 to 65535, got %q", callbackPointer, domain.Shorten(port))
		}
	}
	return u, checkHost(u.Hostname())
}

// checkHost refuses host names that programs interpret differently.
func checkHost(host string) error {
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return domain.Errorf(domain.Invalid, "%s: want an address without a zone", callbackPointer)
		}
		return nil
	}
	if strings.ContainsFunc(host, func(c rune) bool {
		return c != '-' && c != '.' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}) {
		return domain.Errorf(domain.Invalid, "%s: want a host in ASCII letters, such as xn--…, got %q", callbackPointer, domain.Shorten(host))
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 {
			return domain.Errorf(domain.Invalid, "%s: want a host name, got %q", callbackPointer, domain.Shorten(host))
		}
	}
	// Some resolvers interpret 2130706433, 0x7f.1 and 0177.0.0.1 as 127.0.0.1.
	last := strings.ToLower(labels[len(labels)-1])
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == "" {
		return domain.Errorf(domain.Invalid, "%s: want an IPv4 address of four decimal numbers, got %q", callbackPointer, domain.Shorten(host))
	}
	return nil
}
