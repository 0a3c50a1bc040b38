package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/doctor"
)

func TestDoctor_PrintsALineForEachCheckAndASummary(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	args := []string{"doctor", "--data", folder, "--listen", "127.0.0.1:0", "--bus-listen=", "--blob-listen="}
	got := messagehub(t, "", args...)
	require.Equal(t, 0, got.status, got.out+got.err)
	require.Regexp(t, `(?m)^ok           configuration  5 settings besides the defaults, no file; messagehub config print has them$`, got.out)
	require.Regexp(t, `(?m)^ok           folder         .*data does not exist; serve creates it in `, got.out)
	require.Regexp(t, `(?m)^0 faults, 0 warnings, \d+ ok; \d\.\d s$`, got.out)
	require.NotContains(t, got.out, "\x1b", "colours are for a terminal")
	require.NoDirExists(t, folder, "it creates nothing")

	require.NoError(t, os.WriteFile(folder, nil, 0o600))
	got = messagehub(t, "", args...)
	require.Equal(t, 1, got.status, got.out)
	require.Regexp(t, `(?m)^fault        folder         data folder .*: it is not a folder, or not in one$`, got.out)
	require.Regexp(t, `(?m)^ +next: choose another with --data`, got.out)
	require.Regexp(t, `(?m)^not checked  lock           since folder has a fault$`, got.out)
	require.Regexp(t, `(?m)^1 fault, 0 warnings, \d+ ok, 3 not checked;`, got.out)
}

func TestDoctor_NamesEachFaultOfTheConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hub.yaml")
	for text, want := range map[string]string{
		"listen: [":                     "yaml: line 1",
		"listn: 127.0.0.1:1":            "listn (" + file + " line 1): no such key; did you mean listen?",
		"cosmos: {key: c2VjcmV0}":       "there is no cosmos.endpoint to use it with",
		"tls: {cert: a.pem}":            "a certificate needs its key",
		"listen: 0.0.0.0:80":            "actors are not authenticated",
		"oidc: {audience: messagehub}":  "there is no oidc.issuer to use it with",
		"data: a\nin-memory: true":      "in-memory says that nothing is to be kept",
		"limits: {payload: 64MB}":       "a request has at most limits.request-body",
		"servicebus: {namespace: 'a'}":  "want the host name alone",
		"servicebus: {sessions: 'a b'}": "want a whole number of at least 1",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		for _, command := range [][]string{{"doctor", "--online"}, {"config", "check"}} {
			got := messagehub(t, "", append(command, "--config", file)...)
			require.Equal(t, 1, got.status, text)
			require.Contains(t, got.out, "fault        configuration", text)
			require.Contains(t, got.out, want, text)
			require.Empty(t, got.err)
		}
	}
	got := messagehub(t, "", "doctor", "--config", file+".absent")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.out, "cannot read the configuration file")
	require.Contains(t, got.out, "not checked  everything else  since the configuration has a fault")
}

func TestDoctor_HidesSecrets(t *testing.T) {
	got := runWith(t, []string{"MESSAGEHUB_COSMOS_ENDPOINT=AccountEndpoint=https://a.documents.azure.com/;AccountKey=c2VjcmV0LWtleQ=="}, "doctor")
	require.Equal(t, 1, got.status)
	require.NotContains(t, got.out+got.err, "c2VjcmV0")
	got = messagehub(t, "", "config", "print", "--cosmos-endpoint", "https://user:pass@a.example/")
	require.Equal(t, 2, got.status)
	require.NotContains(t, got.out+got.err, "pass@")
}

func TestDoctor_OnlineChecksTheAccountsAndPrintsThePrice(t *testing.T) {
	d := newAccounts(t)
	d.provision(0)
	for i, v := range d.environ { // the emulated namespace serves only plain HTTP
		if strings.HasPrefix(v, "MESSAGEHUB_SERVICEBUS_") {
			d.environ = slices.Delete(d.environ, i, i+1)
			break
		}
	}
	args := []string{"doctor", "--online", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--bus-listen="}
	got := runWith(t, d.environ, args...)
	require.Equal(t, 0, got.status, got.out+got.err)
	require.Regexp(t, `(?m)^ok           cosmos.rights      executeQuery, items/upsert, items/create`, got.out)
	require.Regexp(t, `(?m)^0 faults, \d warnings, \d+ ok; \d+\.\d s, \d+\.\d request units$`, got.out)
	for _, secret := range d.secrets {
		require.NotContains(t, got.out, secret)
	}

	d.refused = func(r *http.Request) int {
		if r.Method == http.MethodDelete {
			return http.StatusForbidden
		}
		return 0
	}
	got = runWith(t, d.environ, append(args, "--json")...)
	require.Equal(t, 1, got.status, got.out+got.err)
	var report doctorReport
	require.NoError(t, json.Unmarshal([]byte(got.out), &report))
	require.Equal(t, 1, report.Format)
	require.True(t, report.Online)
	require.Equal(t, 3, report.Faults, "one of Cosmos, and two containers of Blob Storage")
	require.Positive(t, report.Units)
	require.True(t, slices.ContainsFunc(report.Findings, func(f doctor.Finding) bool {
		return f.Check == "cosmos.rights" && f.Subject == "items/delete" && f.State == doctor.Fault && f.Remedy != ""
	}))
}

func TestDoctor_ReportsThatItMadeNoRequest(t *testing.T) {
	d := newAccounts(t)
	d.requested = func() { t.Error("without --online it calls no account") }
	got := runWith(t, d.environ, "doctor", "--data", t.TempDir(), "--listen", "127.0.0.1:0")
	require.Contains(t, got.out, "\nThe accounts, the namespace and the issuers were not called; messagehub doctor --online does that.\n")
	require.NotContains(t, got.out, "request units")
}

func TestDoctor_RefusesAWrongCommandLine(t *testing.T) {
	for _, args := range [][]string{
		{"doctor", "now"},
		{"doctor", "--offline"},
		{"config", "check", "hub.yaml"},
		{"config", "print", "--format", "json"},
	} {
		got := messagehub(t, "", args...)
		require.Equal(t, 2, got.status, args)
		require.Contains(t, got.err, " --help\n")
		require.Empty(t, got.out)
	}
}

func TestConfigPrint_NamesTheOriginOfEachKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hub.yaml")
	require.NoError(t, os.WriteFile(file, []byte("log: {level: warn}\nadmin: {token: abcdefghijklmnopqrst}\n"), 0o600))
	environ := []string{"MESSAGEHUB_RETENTION=36h"}
	got := runWith(t, environ, "config", "print", "--changed", "--config", file, "--in-memory")
	require.Equal(t, 0, got.status, got.err)
	require.Equal(t, "KEY          VALUE       FROM\n"+
		"in-memory    true        --in-memory\n"+
		"admin.token  [redacted]  "+file+" line 2\n"+
		"retention    36h         MESSAGEHUB_RETENTION\n"+
		"log.level    warn        "+file+" line 1\n", got.out)

	got = runWith(t, environ, "config", "print", "--config", file, "--json")
	require.Equal(t, 0, got.status, got.err)
	var settings []printedSetting
	require.NoError(t, json.Unmarshal([]byte(got.out), &settings))
	i := slices.IndexFunc(settings, func(s printedSetting) bool { return s.Key == "admin.token" })
	require.Equal(t, printedSetting{"admin.token", "[redacted]", true, "file", file + " line 2", "MESSAGEHUB_ADMIN_TOKEN"}, settings[i])
	require.NotContains(t, got.out, "abcdefghij")
}

func TestConfigPrint_PrintsSettingsThatContradictEachOther(t *testing.T) {
	got := runWith(t, nil, "config", "print", "--changed", "--listen", "0.0.0.0:80")
	require.Equal(t, 2, got.status)
	require.Equal(t, "KEY     VALUE       FROM\nlisten  0.0.0.0:80  --listen\n", got.out)
	require.Contains(t, got.err, "actors are not authenticated")

	got = messagehub(t, "", "config", "print", "--drain-delay", "soon")
	require.Equal(t, 2, got.status)
	require.Empty(t, got.out)
	require.Contains(t, got.err, "want a time from 0s to 5m0s")
}

func TestDoctorReport_HasColoursOnlyOnATerminal(t *testing.T) {
	r := doctorReport{Findings: []doctor.Finding{{Check: "sync", State: doctor.Warning, Text: "slow\x1b[2J", Remedy: "wait"}}}
	r.countFindings()
	var out bytes.Buffer
	r.printReport(&out, true)
	require.True(t, strings.HasPrefix(out.String(), "\x1b[33mwarning    \x1b[0m  sync  slow"), out.String())
	require.NotContains(t, out.String(), "\x1b[2J", "what others have written moves no cursor")
}

// The variables of OpenTelemetry are not settings of the hub, and some contain
// secrets, so the command must not print them.
func TestConfigPrint_ShowsNoVariableOfOpenTelemetry(t *testing.T) {
	environ := []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://user:hush-endpoint@collector.example", "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20hush-header",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS=x=hush-traces", "OTEL_EXPORTER_OTLP_CLIENT_KEY=/hush-key.pem", "OTEL_RESOURCE_ATTRIBUTES=a=hush-attribute",
	}
	for _, args := range [][]string{{"config", "print"}, {"config", "print", "--json"}, {"config", "check"}, {"config", "check", "--json"}} {
		got := runWith(t, environ, args...)
		require.Equal(t, 0, got.status, got.err)
		require.NotContains(t, got.out+got.err, "hush", args)
		require.NotContains(t, got.out, "OTEL_", args)
	}
}
