package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// healthTimeout is the timeout of a probe. To a container engine, a late probe
// is a failed probe.
const healthTimeout = 3 * time.Second

func (p *process) healthCommand() *cobra.Command {
	var url, file string
	var ready bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Report whether a hub is alive, or ready",
		Long: "Ask a hub, or an emulator, for /healthz: whether the process serves requests. With --ready ask for\n" +
			"/readyz: whether the hub and everything that it depends on can work. It is the probe for container images, which\n" +
			"may have no shell.\n\n" +
			"Without --url it asks the hub on this machine, at admin-listen or, if that is empty, at listen. It reads\n" +
			"the file and the environment as serve does. If the address of the hub was set by a flag, give --url. The\n" +
			"certificate of the hub is for another name than the loopback address, so it is verified only with\n" +
			"--url.\n\n" +
			"The exit status is 0 if the answer is 200 within 3 s, 1 otherwise, and 2 for a wrong command line\n" +
			"or setting.",
		Example: "  messagehub health\n" +
			"  messagehub health --ready --url https://hub.example.org",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&url, "url", "", "`URL` of the hub or emulator; default: the address in the settings")
	flags.BoolVar(&ready, "ready", false, "ask whether the hub is ready")
	flags.StringVar(&file, "config", "", "`FILE` with settings in YAML")
	p.addCertificates(flags)
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		secured, err := p.access.tlsConfig()
		if err != nil {
			return p.usage("%w", err)
		}
		if url == "" {
			cfg, err := config.Load(config.Inputs{File: file, Environ: p.environ})
			if err != nil {
				return err
			}
			if url, err = probeURL(&cfg); err != nil {
				return p.usage("%w", err)
			}
			secured = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} //nolint:gosec // the port is the hub's own, and the request holds no secret
		}
		hub, err := hubclient.NewWithTLS(url, secured)
		if err != nil {
			return p.usage("%w", err)
		}
		defer hub.Close()
		return p.probe(ctx, hub, ready)
	})
	return cmd
}

// probeURL returns the URL with which a probe reaches a local hub that has
// these settings.
func probeURL(cfg *config.Config) (string, error) {
	address := cmp.Or(cfg.AdminListen, cfg.Listen)
	host, port, err := net.SplitHostPort(address)
	switch {
	case err != nil:
		return "", err
	case port == "0":
		return "", fmt.Errorf("the hub chooses its port (%s); name the hub with --url", address)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip == netip.IPv4Unspecified() {
		host = "127.0.0.1"
	} else if err == nil && ip.IsUnspecified() {
		host = "::1"
	}
	scheme := "http://"
	if cfg.TLS.Certificate != "" {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port), nil
}

// probe fails unless the hub answers 200 within healthTimeout.
func (p *process) probe(ctx context.Context, hub *hubclient.Client, ready bool) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	path := "/healthz"
	if ready {
		path = "/readyz"
	}
	req, err := hub.Request(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	resp, err := hub.HTTP().Do(req)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("no answer from %s%s within %s", hub.Base, path, healthTimeout)
		}
		return hub.Unreachable(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return fmt.Errorf("the response of %s%s is incomplete: %w", hub.Base, path, err)
	}
	shown := terminal.Printable(string(bytes.TrimSpace(text)))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s%s answers %d: %s", hub.Base, path, resp.StatusCode, terminal.Clip(shown, 300))
	}
	_, err = fmt.Fprintln(p.out, shown)
	return err
}
