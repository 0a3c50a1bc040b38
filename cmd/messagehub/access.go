package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

// ownTokenVariable is the environment variable that contains the user's token
// from an issuer.
const ownTokenVariable = "MESSAGEHUB_TOKEN"

// An access contains the settings with which a command connects to a hub: the
// token that it sends, and TLS certificates.
type access struct {
	tokenFile     string
	tokenFlag     string // name of the flag that sets tokenFile; "" for --token-file
	ca, cert, key string

	url        string // prefix of the URLs to which the command sends requests
	isOperator bool   // the command is for operators
	shown      string // where the token comes from; "" if the command has no token
}

// addAccess adds flags for the token and for certificates.
func (p *process) addAccess(flags *pflag.FlagSet) { p.addAccessBy(flags, "token-file") }

// addAccessBy is addAccess for a command whose flag --token-file may set a
// different token. tokenFlag is the name of the flag for the user's token.
func (p *process) addAccessBy(flags *pflag.FlagSet, tokenFlag string) {
	flags.StringVar(&p.access.tokenFile, tokenFlag, "", "`FILE` with the token of your issuer; default: the token in "+ownTokenVariable)
	p.addCertificates(flags)
}

// addCertificates adds only the flags for certificates. The commands that call
// it use other kinds of tokens, and read an issuer's token only from the
// environment.
func (p *process) addCertificates(flags *pflag.FlagSet) {
	flags.StringVar(&p.access.ca, "ca", "", "accept only certificates of the authorities in `FILE` (PEM)")
	flags.StringVar(&p.access.cert, "cert", "", "use the client certificate in `FILE` (PEM)")
	flags.StringVar(&p.access.key, "key", "", "`FILE` with the private key of --cert (PEM)")
}

// newHub returns a client for the hub at url, which sends the user's token, if
// there is one.
func (p *process) newHub(url string) (*hubclient.Client, error) {
	secured, err := p.access.tlsConfig()
	if err != nil {
		return nil, p.usage("%w", err)
	}
	c, err := hubclient.NewWithTLS(url, secured)
	if err != nil {
		return nil, p.usage("%w", err)
	}
	p.access.url = c.Base
	if c.Token, err = p.userToken(); err != nil {
		return nil, p.usage("%w", err)
	}
	if c.Token != "" {
		p.access.shown = ownTokenVariable
		if p.access.tokenFile != "" {
			p.access.shown = p.access.tokenFile
		}
		p.warnIfReadable(c, "the token")
	}
	return c, nil
}

// userToken returns the user's token, or "".
func (p *process) userToken() (string, error) {
	if p.access.tokenFile == "" {
		return p.variable(ownTokenVariable), nil
	}
	flag := cmp.Or(p.access.tokenFlag, "--token-file")
	lines, err := readSecretFile(p.access.tokenFile)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	if len(lines) != 1 {
		return "", fmt.Errorf("%s: want one token in %s, on one line", flag, p.access.tokenFile)
	}
	return lines[0], nil
}

// tlsConfig returns a TLS configuration with the certificates that flags name.
// It returns nil if no flag is set; then the system's certificates are used.
func (a *access) tlsConfig() (*tls.Config, error) {
	if a.ca == "" && a.cert == "" && a.key == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.ca != "" {
		text, err := os.ReadFile(a.ca)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--ca: %s has no certificate in PEM", a.ca)
		}
	}
	if (a.cert == "") != (a.key == "") {
		return nil, errors.New("--cert and --key: a certificate needs its key; give both, or neither")
	}
	if a.cert != "" {
		pair, err := tls.LoadX509KeyPair(a.cert, a.key)
		if err != nil {
			return nil, fmt.Errorf("--cert and --key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
