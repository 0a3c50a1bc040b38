package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

const envPrefix = "MESSAGEHUB_"

// envFile is the environment variable that contains the path of the
// configuration file. It corresponds to the flag --config.
const envFile = envPrefix + "CONFIG"

// envToken is the environment variable with the token that commands send to a
// hub. It is not a setting of a node.
const envToken = envPrefix + "TOKEN"

// A source says where a value comes from.
type source struct {
	layer layer
	text  string
}

type layer int

const (
	byDefault layer = iota
	byFile
	byEnvironment
	byFlag
)

// source describes where the value of a key comes from.
func (c *Config) source(name string) string {
	if s, ok := c.from[name]; ok {
		return s.text
	}
	return "the default"
}

// Inputs contains the layers that override the defaults.
type Inputs struct {
	File    string         // path of a YAML file; if "", the environment variable may contain the path
	Environ []string       // NAME=VALUE, as returned by os.Environ
	Flags   *pflag.FlagSet // parsed flags, to which AddFlags added the keys; nil without flags

	// Check, unless nil, is called before the result is validated. A command
	// uses it to reject settings that other commands accept.
	Check func(*Config) error
}

// AddFlags adds a flag for every key that may be a flag. If names are given, it
// adds flags only for these keys.
func AddFlags(flags *pflag.FlagSet, names ...string) {
	defaults := loadDefaults()
	for _, k := range keys {
		if !k.flag || len(names) > 0 && !slices.Contains(names, k.name) {
			continue
		}
		f := &pflag.Flag{Name: flagName(k.name), Usage: k.usage, Value: &flagValue{value: k.in(&defaults)}}
		f.DefValue = f.Value.String()
		if f.Value.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
		flags.AddFlag(f)
	}
}

// A flagValue stores the text of a flag. Load parses the text after it has read
// the lower layers.
type flagValue struct {
	value
	text string
}

func (v *flagValue) Set(s string) error { v.text = s; return nil }

func (v *flagValue) String() string {
	if v.value == nil { // pflag calls String on the zero value
		return ""
	}
	return v.value.String()
}

// Type returns the type that pflag prints if the usage text contains no
// placeholder.
func (v *flagValue) Type() string {
	if _, ok := v.value.(*boolValue); ok {
		return "bool"
	}
	return "string"
}

// Addresses of the operators' listener that Load uses if no layer sets one. If
// listen has port 0, Load uses anyPortAdminListen. Default sets no such
// listener, because programs that open a node themselves need only one.
const (
	usualAdminListen   = "127.0.0.1:8081"
	anyPortAdminListen = "127.0.0.1:0"
)

// loadDefaults returns the lowest layer: the settings if no other layer sets a
// key.
func loadDefaults() Config {
	c := Default()
	c.AdminListen = usualAdminListen
	return c
}

// Load reads the layers and validates the result. Its error is an [InvalidError]
// that lists every fault, one per line.
func Load(in Inputs) (Config, error) {
	c, err := readLayers(in)
	if err != nil {
		err = &InvalidError{err}
	}
	return c, err
}

func readLayers(in Inputs) (Config, error) {
	c := loadDefaults()
	c.from = make(map[string]source)
	env, faults := environment(in.Environ)
	file := in.File
	if file == "" {
		file = env[envFile]
	}
	if file != "" {
		c.file = file
		faults = append(faults, c.readFile(file)...)
	}
	for _, k := range keys {
		if text, ok := env[envName(k.name)]; ok {
			faults = append(faults, c.set(k, text, source{byEnvironment, envName(k.name)})...)
		}
		if in.Flags == nil || !k.flag {
			continue
		}
		f := in.Flags.Lookup(flagName(k.name))
		if f == nil {
			continue // this command has no flag for the key
		}
		if v, ok := f.Value.(*flagValue); ok && f.Changed {
			faults = append(faults, c.set(k, v.text, source{byFlag, "--" + f.Name})...)
		}
	}
	if len(faults) > 0 { // after a fault the Config is incomplete, so it cannot be validated
		for i := range faults {
			faults[i] = redactError(faults[i])
		}
		return Config{}, errors.Join(faults...)
	}
	if _, port, err := net.SplitHostPort(c.Listen); err == nil && port == "0" && c.IsDefault("admin-listen") {
		c.AdminListen = anyPortAdminListen
	}
	if in.Check != nil {
		if err := in.Check(&c); err != nil {
			return Config{}, err
		}
	}
	if err := c.readSecretFiles(); err != nil {
		return Config{}, redactError(err)
	}
	c.Broker.readVariables(in.Environ)
	c.Objects.Stores.readVariables(in.Environ)
	return c, c.Validate()
}

// set parses the text of a key's value.
func (c *Config) set(k key, text string, from source) []error {
	v := k.in(c)
	if !c.isSecretKey(k) && hasSecret(text) && !mayTextHaveSecrets(v, text) {
		return []error{secretFault(k.name, text, from)}
	}
	if err := v.Set(text); err != nil {
		shown := fmt.Sprintf("%q", text)
		if c.isSecretKey(k) {
			shown = redacted
		}
		if _, isList := v.(listValue); isList {
			return []error{fmt.Errorf("%s (%s): %w", k.name, from.text, err)}
		}
		return []error{fmt.Errorf("%s = %s (%s): %w", k.name, shown, from.text, err)}
	}
	c.from[k.name] = from
	return nil
}

// secretFault returns the error about a value that contains a secret. The error
// names the setting that is meant for the secret.
func secretFault(name, text string, from source) error {
	seen := ""
	if from.layer == byFlag {
		seen = "; other users can read a command line, so replace the secret if this machine has other users"
	}
	return fmt.Errorf("%s (%s): the value holds a secret, so it is not shown; put it in %s%s", name, from.text, secretPlace(name, text), seen)
}

// environment returns the variables whose names begin with the hub's prefix. It
// reports unknown variables with this prefix.
func environment(environ []string) (map[string]string, []error) {
	known := []string{envFile, envToken}
	for _, k := range keys {
		known = append(known, envName(k.name))
	}
	former := make(map[string]string)
	for before, now := range formerNames {
		former[envName(before)] = envName(now)
	}
	ours := make(map[string]string)
	var faults []error
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) {
			continue
		}
		name = cmp.Or(former[name], name)
		if !slices.Contains(known, name) {
			faults = append(faults, unknown(name, "in the environment", known))
			continue
		}
		ours[name] = text
	}
	return ours, faults
}

// unknown returns the error about a key that does not exist.
func unknown(name, where string, known []string) error {
	return fmt.Errorf("%s (%s): no such key; %s", name, where, suggestName(name, known))
}

// hasFileSecret reports whether the configuration file contains a secret.
func (c *Config) hasFileSecret() bool {
	return c.Broker.hasTokens() || c.Objects.Stores.hasKeys() || slices.ContainsFunc(keys, func(k key) bool {
		return c.isSecretKey(k) && c.from[k.name].layer == byFile
	})
}

// readFile sets the keys that a file contains.
func (c *Config) readFile(path string) []error {
	text, err := os.ReadFile(path)
	if err != nil {
		return []error{fmt.Errorf("cannot read the configuration file: %w; check the path in --config or %s", err, envFile)}
	}
	faults := c.readYAML(path, text)
	info, err := os.Stat(path)
	if err == nil && c.hasFileSecret() && areSettingsOpen(info) {
		c.warnings = append(c.warnings, fmt.Sprintf("the configuration file %s holds a secret, and its mode %04o lets other users read or write it; run chmod 600 on it", path, info.Mode().Perm()))
	}
	return faults
}
