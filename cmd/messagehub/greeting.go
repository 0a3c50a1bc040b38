package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/energymarket"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// greet prints the hub's addresses and data folder. On a terminal, it also
// prints three commands to try.
func (p *process) greet(n *node.Node, cfg *config.Config) {
	keeps := "keeps its data in " + node.AbsolutePath(cfg.Data)
	if state := n.FolderState(); state != "" {
		keeps += " (" + state + ")"
	}
	switch {
	case cfg.InMemory:
		keeps = "keeps its data in memory, until it stops"
	case !cfg.Embedded():
		payloads := cfg.Data
		if !cfg.EmbeddedBlob() {
			payloads = cfg.Blob.Endpoint
		}
		keeps = "keeps its events in " + cfg.Cosmos.Endpoint + " and their payloads in " + payloads
	}
	fmt.Fprintf(p.out, "MessageHub %s listens on %s and %s.\n", version, n.URL(), keeps)
	if n.AdminAddr() != nil {
		fmt.Fprintf(p.out, "Operators and their tools use %s.\n", n.AdminURL())
	}
	fmt.Fprintf(p.out, "Its console is at %s/console/.\n", n.AdminURL())
	if bus := n.BusAddr(); bus != nil {
		fmt.Fprintf(p.out, "Domains reach it over Service Bus at %s", bus)
		if blobs := n.BlobAddr(); blobs != nil {
			fmt.Fprintf(p.out, " and leave content at %s", blobs)
		}
		fmt.Fprintf(p.out, "; see %s domain --help.\n", programName(p.args[0]))
	}
	if file := n.AdminTokenFile(); file != "" {
		fmt.Fprintf(p.out, "The token of its operators is in %s.\n", file)
	}
	if p.isWatched {
		p.printCommands(n.URL(), cfg)
	}
}

// printCommands prints three commands that a user can copy and run in any
// folder, with any configuration of the hub. They use a random actor, for which
// no event can be waiting.
func (p *process) printCommands(hubURL string, cfg *config.Config) {
	program, actor, bundle := programName(p.args[0]), energymarket.NewGLN(energymarket.RandomDigits()), uuid.NewString()
	origin, mode, exists := sampleOrigin(cfg)
	if !exists {
		fmt.Fprintf(p.out, "Every domain makes its content on request: try it with %s domain.\n\n", program)
		return
	}
	switch {
	case p.hasDevIssuer:
		fmt.Fprintf(p.out, "It accepts tokens only. Try it, in another terminal: make a token, send an event, fetch it, confirm it.\n\n")
		fmt.Fprintf(p.out, "  export %s=$(%s token --actor %s --domain %s%s)\n", ownTokenVariable, program, actor, origin, dataFlagOf(cfg))
	case cfg.OIDC.IsOn():
		fmt.Fprintf(p.out, "It accepts tokens of %s only. Try it, in another terminal, with a token of that issuer in %s:\n"+
			"send an event, fetch it, confirm it.\n\n", strings.Join(cfg.OIDC.Issuers, ", "), ownTokenVariable)
	default:
		fmt.Fprintf(p.out, "Try it, in another terminal: send an event, fetch it, confirm it.\n\n")
	}
	access := accessFlags(hubURL, cfg.TLS.Certificate)
	fmt.Fprintf(p.out, "  echo '%s' | %s send%s -\n", sampleEvent(actor, origin, mode), program, access)
	fmt.Fprintf(p.out, "  %s peek%s --actor %s --bundle-id %s\n", program, access, actor, bundle)
	fmt.Fprintf(p.out, "  %s dequeue%s --actor %s %s\n\n", program, access, actor, bundle)
}

// accessFlags returns the flags with which a command connects to the hub at
// hubURL. certificate is the file with the hub's certificate, or "" for plain
// HTTP.
func accessFlags(hubURL, certificate string) string {
	flags := ""
	if certificate != "" {
		hubURL = urlOfCertificate(hubURL, certificate)
		flags = " --ca " + terminal.ShellWord(node.AbsolutePath(certificate))
	}
	if hubURL != hubclient.DefaultURL {
		flags = " --url " + hubURL + flags
	}
	return flags
}

// urlOfCertificate replaces the host in hubURL with a host name from the hub's
// certificate. It returns hubURL unchanged if the certificate is valid for that
// host, contains no usable host name, or cannot be read.
func urlOfCertificate(hubURL, file string) string {
	text, err := os.ReadFile(file)
	u, urlErr := url.Parse(hubURL)
	block, _ := pem.Decode(text)
	if err != nil || urlErr != nil || block == nil {
		return hubURL
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil || leaf.VerifyHostname(u.Hostname()) == nil {
		return hubURL
	}
	for _, name := range leaf.DNSNames {
		if !strings.Contains(name, "*") {
			u.Host = net.JoinHostPort(name, u.Port())
			return u.String()
		}
	}
	return hubURL
}

// dataFlagOf returns the flag --data with the data folder, or "" for the
// default folder.
func dataFlagOf(cfg *config.Config) string {
	if cfg.IsDefault("data") {
		return ""
	}
	return " --data " + terminal.ShellWord(node.AbsolutePath(cfg.Data))
}
