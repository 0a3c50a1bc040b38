package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/api/webhook"
)

// Environment variables that contain a receiver's secrets, separated by blanks.
// Unlike flags, other users of the machine cannot read them.
const (
	webhookSecretVariable = "MESSAGEHUB_WEBHOOK_SECRET" //nolint:gosec // the name of a variable
	webhookHMACVariable   = "MESSAGEHUB_WEBHOOK_HMAC_KEY"
)

const verifyHelp = "Secrets of Standard Webhooks begin with whsec_ (shared, v1), whsk_ (private key, v1a) or whpk_ (public key,\n" +
	"v1a); any other hmac_secret_key of a subscription is an HMAC key. Other users of the machine can read flags:\n" +
	"--secret-file, " + webhookSecretVariable + " and " + webhookHMACVariable + " avoid that."

// maxSecretFile is the maximum size of a file with secrets, in bytes.
const maxSecretFile = 64 << 10

// A verifyFlags contains the flags that set a receiver's secrets.
type verifyFlags struct {
	secrets  []string
	file     string
	hmacKeys []string
}

func (v *verifyFlags) addFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&v.secrets, "secret", nil, "verify with this `SECRET`; may be given more than once")
	f.StringVar(&v.file, "secret-file", "", "read secrets from `FILE`, one per line")
	f.StringArrayVar(&v.hmacKeys, "hmac-key", nil, "verify the Authorization header with this `KEY`; may be given more than once")
}

// readTexts returns all secrets and HMAC keys from the flags, the file and the
// environment.
func (v *verifyFlags) readTexts(p *process) (secrets, hmacKeys []string, err error) {
	secrets = append(secrets, v.secrets...)
	if v.file != "" {
		read, err := readSecretFile(v.file)
		if err != nil {
			return nil, nil, fmt.Errorf("--secret-file: %w", err)
		}
		secrets = append(secrets, read...)
	}
	hmacKeys = append(hmacKeys, v.hmacKeys...)
	if len(secrets) == 0 && len(hmacKeys) == 0 {
		secrets = strings.Fields(p.variable(webhookSecretVariable))
		if key := p.variable(webhookHMACVariable); key != "" {
			hmacKeys = []string{key}
		}
	}
	for _, key := range hmacKeys {
		if key == "" {
			return nil, nil, errors.New("--hmac-key: want a key, got nothing")
		}
	}
	return secrets, hmacKeys, nil
}

// newVerifier returns a Verifier with the keys from the flags, the file and the
// environment. Its errors contain no secrets.
func (v *verifyFlags) newVerifier(p *process) (webhook.Verifier, error) {
	var found webhook.Verifier
	secrets, hmacKeys, err := v.readTexts(p)
	if err != nil {
		return found, err
	}
	for i, text := range secrets {
		key, err := webhook.ParseVerifyKey(text)
		if err != nil {
			return webhook.Verifier{}, fmt.Errorf("--secret: number %d: %w; a key for Authorization belongs to --hmac-key", i+1, err)
		}
		found.Keys = append(found.Keys, key)
	}
	for _, key := range hmacKeys {
		found.HMACKeys = append(found.HMACKeys, webhook.Key(key))
	}
	return found, nil
}

// readSecretFile returns the lines of a file, without empty lines and comments.
func readSecretFile(name string) (secrets []string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(io.LimitReader(f, maxSecretFile))
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
			secrets = append(secrets, line)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("%s has no secret", name)
	}
	return secrets, nil
}
