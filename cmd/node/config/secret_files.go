package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// SecretFiles contains the paths of files that contain secrets. Each path
// replaces the setting that would contain the secret itself.
type SecretFiles struct {
	AdminToken, CosmosKey, BusConnection, BlobKey, PushSecretKey, ConsoleClientSecret, ConsoleSessionKey string
}

// A secretFile relates two keys: name sets the path of a file, and secret is
// the key of the secret that the file contains.
type secretFile struct {
	name, secret string
	file         func(*SecretFiles) *string
	at           func(*Config) *Secret
}

var secretFiles = []secretFile{
	{"admin.token-file", "admin.token", func(f *SecretFiles) *string { return &f.AdminToken }, func(c *Config) *Secret { return &c.Admin.Token }},
	{"cosmos.key-file", "cosmos.key", func(f *SecretFiles) *string { return &f.CosmosKey }, func(c *Config) *Secret { return &c.Cosmos.Key }},
	{"servicebus.connection-file", "servicebus.connection", func(f *SecretFiles) *string { return &f.BusConnection }, func(c *Config) *Secret { return &c.ServiceBus.Connection }},
	{"blob.key-file", "blob.key", func(f *SecretFiles) *string { return &f.BlobKey }, func(c *Config) *Secret { return &c.Blob.Key }},
	{"push.secret-key-file", "push.secret-key", func(f *SecretFiles) *string { return &f.PushSecretKey }, func(c *Config) *Secret { return &c.Push.SecretKey }},
	{"console.client-secret-file", "console.client-secret", func(f *SecretFiles) *string { return &f.ConsoleClientSecret }, func(c *Config) *Secret { return &c.Console.ClientSecret }},
	{"console.session-key-file", "console.session-key", func(f *SecretFiles) *string { return &f.ConsoleSessionKey }, func(c *Config) *Secret { return &c.Console.SessionKey }},
}

// readSecretFiles reads the secrets from their files. Its error contains no
// secrets.
func (c *Config) readSecretFiles() error {
	var faults []error
	for _, f := range secretFiles {
		path := *f.file(&c.SecretFiles)
		if path == "" {
			continue
		}
		if !c.IsDefault(f.secret) {
			faults = append(faults, fmt.Errorf("%s (%s): %s is set too (%s); remove one of the two", f.name, c.source(f.name), f.secret, c.source(f.secret)))
			continue
		}
		secret, err := readTokenFile(strings.TrimSuffix(f.name, "-file"), path)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		*f.at(c) = secret
		c.from[f.secret] = source{c.from[f.name].layer, "the file of " + f.name}
		if info, err := os.Stat(path); err == nil && areSettingsOpen(info) {
			c.warnings = append(c.warnings, fmt.Sprintf("the file of %s holds a secret, and its mode %04o lets other users read or write it; run chmod 640 on it", f.name, info.Mode().Perm()))
		}
	}
	return errors.Join(faults...)
}
