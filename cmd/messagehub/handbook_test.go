package main

import (
	"encoding/base64"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/guide"
	bus "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/deploy/handbook"
	blobaccount "github.com/messagehub/messagehub/repository/content/embedded"
)

// handbookPages returns the text of each page of the guide and the handbook, by
// file.
func handbookPages(t *testing.T) map[string]string {
	t.Helper()
	pages := make(map[string]string)
	for folder, files := range map[string]interface {
		ReadFile(name string) ([]byte, error)
	}{"api/guide": guide.Pages, "deploy/handbook": handbook.Pages} {
		names, err := filepath.Glob(filepath.Join("../..", folder, "*.md"))
		require.NoError(t, err)
		for _, name := range names {
			text, err := files.ReadFile(filepath.Base(name))
			require.NoError(t, err)
			pages[path.Join(folder, filepath.Base(name))] = string(text)
		}
	}
	require.NotEmpty(t, pages)
	return pages
}

// Links must be relative or use HTTPS. [TestDocuments_NameOnlyWhatExists]
// checks that their targets exist.
func TestHandbook_LinksOnlyToTheTreeAndByHTTPS(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for name, text := range handbookPages(t) {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target, err := url.Parse(match[1])
			require.NoError(t, err, name)
			if target.IsAbs() {
				require.Equal(t, "https", target.Scheme, "%s: %s", name, match[1])
				require.NotEmpty(t, target.Host, "%s: %s", name, match[1])
				continue
			}
			require.Empty(t, target.Host, "%s: %s", name, match[1])
			require.False(t, path.IsAbs(target.Path), "%s: %s", name, match[1])
			require.False(t, strings.HasPrefix(path.Join(path.Dir(name), target.Path), ".."), "%s: %s leaves the tree", name, match[1])
		}
	}
}

// fencedCode matches a fenced code block. The first group is its language.
var fencedCode = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```$")

func TestHandbook_HasOnlyCommandsThatAreAccepted(t *testing.T) {
	commands := 0
	for name, text := range handbookPages(t) {
		for _, block := range fencedCode.FindAllStringSubmatch(text, -1) {
			if block[1] != "sh" {
				require.NotRegexp(t, `(?m)^ *messagehub [a-z]`, block[2], "%s: a command in a block that is not sh", name)
				continue
			}
			for _, words := range commandsOf(block[2]) {
				commands++
				require.NoError(t, acceptCommand(words), "%s: %s", name, strings.Join(words, " "))
			}
		}
		for _, code := range regexp.MustCompile("`messagehub ([^`]+)`").FindAllStringSubmatch(fencedCode.ReplaceAllString(text, ""), -1) {
			words := strings.Fields(code[1])
			require.NoError(t, acceptFlags(words), "%s: messagehub %s", name, code[1])
		}
	}
	require.NotZero(t, commands)
}

func TestHandbook_NamesOnlyFlagsThatExist(t *testing.T) {
	flags := []string{"parameters"} // flags of the Azure CLI, which are not settings
	var collect func(*cobra.Command)
	collect = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		for _, sub := range cmd.Commands() {
			collect(sub)
		}
	}
	collect((&process{args: []string{"messagehub"}}).root())
	code := regexp.MustCompile("`--([a-z-]+)")
	for name, text := range handbookPages(t) {
		for _, match := range code.FindAllStringSubmatch(text, -1) {
			require.Contains(t, flags, match[1], name)
		}
	}
}

func TestHandbook_NamesOnlySettingsThatExist(t *testing.T) {
	settings := settingNames()
	var sections, variables []string
	for _, setting := range settings {
		if section, _, hasSection := strings.Cut(setting, "."); hasSection {
			sections = append(sections, section)
		}
		variables = append(variables, "MESSAGEHUB_"+strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(setting)))
	}
	variables = append(variables, "MESSAGEHUB_CONFIG", ownTokenVariable, "MESSAGEHUB_EMULATOR_KEY")
	files := []string{"push.key", "hub.key"} // file names that look like names of settings

	code := regexp.MustCompile("`([a-z-]+)\\.([a-z-]+)`")
	setting := regexp.MustCompile("settings? `([a-z.-]+)`")
	variable := regexp.MustCompile(`MESSAGEHUB_[A-Z_]*[A-Z]\b`)
	for name, text := range handbookPages(t) {
		for _, match := range code.FindAllStringSubmatch(text, -1) {
			if setting := match[1] + "." + match[2]; slices.Contains(sections, match[1]) && !slices.Contains(files, setting) {
				require.Contains(t, settings, setting, name)
			}
		}
		for _, match := range setting.FindAllStringSubmatch(text, -1) {
			require.Contains(t, settings, match[1], name)
		}
		for _, found := range variable.FindAllString(text, -1) {
			require.Contains(t, variables, found, name)
		}
	}
}

// Each YAML block must be a valid configuration, unless its first line says
// that it is not a configuration.
func TestHandbook_HasOnlyConfigurationsThatLoad(t *testing.T) {
	for name, text := range handbookPages(t) {
		for _, block := range fencedCode.FindAllStringSubmatch(text, -1) {
			if block[1] != "yaml" || strings.HasPrefix(block[2], "# values of the chart") {
				continue
			}
			dir := t.TempDir()
			file := filepath.Join(dir, "hub.yaml")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "admin-token"), []byte(operatorToken), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "push-secret-key"), []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600))
			require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(block[2], "/secrets", dir)), 0o600))
			_, err := config.Load(config.Inputs{File: file, Environ: []string{"AZURE_TOKEN_CREDENTIALS=WorkloadIdentityCredential"}})
			require.NoError(t, err, "%s:\n%s", name, block[2])
		}
	}
}

func TestHandbook_HasTheConnectionStringsOfTheEngines(t *testing.T) {
	blobs := "DefaultEndpointsProtocol=http;AccountName=" + blobaccount.WellKnownAccount + ";AccountKey=" + blobaccount.WellKnownKey +
		";BlobEndpoint=" + defaultBlob + ";"
	_, err := azblob.NewClientFromConnectionString(blobs, nil)
	require.NoError(t, err)
	pages := handbookPages(t)
	require.Contains(t, pages["api/guide/domains.md"], "`"+defaultBus+"`")
	require.Contains(t, pages["api/guide/domains.md"], "`"+blobs+"`")
	require.Contains(t, pages["deploy/handbook/servicebus-emulator.md"], "\n"+defaultBus+"\n")
	require.Contains(t, pages["deploy/handbook/blob-emulator.md"], "\n"+blobs+"\n")
}

func TestHandbook_HasEntitiesThatTheBusEmulatorCreates(t *testing.T) {
	files := 0
	for _, block := range fencedCode.FindAllStringSubmatch(handbookPages(t)["deploy/handbook/servicebus-emulator.md"], -1) {
		if block[1] != "json" {
			continue
		}
		files++
		entities, err := bus.ReadEntities(strings.NewReader(block[2]))
		require.NoError(t, err, block[2])
		namespace, err := bus.Open(bus.Options{Entities: entities})
		require.NoError(t, err, block[2])
		require.NoError(t, namespace.Close())
	}
	require.Equal(t, 1, files)
}

// The page monitoring.md must list exactly the metrics of the hub. Another test
// compares the rules and dashboards in deploy/observability with this page.
func TestHandbook_NamesEachMetricAndNoOther(t *testing.T) {
	exist := make(map[string]bool)
	for metric := range registeredMetrics(t) {
		if strings.HasPrefix(metric, "messagehub_") {
			exist[metric] = false
		}
	}
	suffix := regexp.MustCompile(`_(bucket|sum|count)$`)
	for name, text := range handbookPages(t) {
		for _, found := range regexp.MustCompile(`messagehub_[a-z_]*[a-z]`).FindAllString(text, -1) {
			if _, exists := exist[found]; !exists {
				found = suffix.ReplaceAllString(found, "")
			}
			require.Contains(t, exist, found, name)
			exist[found] = exist[found] || name == "deploy/handbook/monitoring.md"
		}
	}
	for metric, isNamed := range exist {
		require.True(t, isNamed, "monitoring.md says nothing about %s", metric)
	}
}

// A path may also be the prefix of a route.
func TestHandbook_NamesOnlyRoutesThatExist(t *testing.T) {
	document, err := os.ReadFile("../../api/openapi.yaml")
	require.NoError(t, err)
	var routes []string
	for _, match := range regexp.MustCompile(`(?m)^  (/\S*):$`).FindAllStringSubmatch(string(document), -1) {
		routes = append(routes, match[1])
	}
	require.NotEmpty(t, routes)
	named := regexp.MustCompile("(?:[\\s`\"'(]|:[0-9]{4}|\\$HUB|\\$URL|example\\.org)(/(?:v1|api|broker|docs|debug|healthz|readyz|metrics|openapi)\\b[^\\s`\"'?,)]*)")
	found := 0
	for name, text := range handbookPages(t) {
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			found++
			exists := slices.ContainsFunc(routes, func(route string) bool {
				return isRoute(strings.TrimSuffix(match[1], "/"), strings.TrimSuffix(route, "/"))
			})
			require.True(t, exists, "%s: %s", name, match[1])
		}
	}
	require.Greater(t, found, 20)
}

// isRoute reports whether a path matches a route or a prefix of a route.
func isRoute(path, route string) bool {
	parts, pattern := strings.Split(path, "/"), strings.Split(route, "/")
	if len(parts) > len(pattern) {
		return false
	}
	for i, part := range parts {
		if part != pattern[i] && !strings.HasPrefix(pattern[i], "{") {
			return false
		}
	}
	return true
}

// Each alert rule below deploy must have a section in the handbook.
func TestIncidents_HasASectionForEachAlert(t *testing.T) {
	incidents := handbookPages(t)["deploy/handbook/incidents.md"]
	require.NoError(t, filepath.WalkDir("../../deploy", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "rules.yaml" {
			return err
		}
		rules, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(string(rules), -1) {
			require.Contains(t, incidents, "\n## "+match[1]+": ", name)
		}
		return nil
	}))
}

// settingNames returns the names of all settings.
func settingNames() (names []string) {
	for line := range strings.Lines(config.Default().String()) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	return names
}

func TestCommandsOf_FindsCommandsInAScript(t *testing.T) {
	for _, tc := range []struct {
		script string
		want   [][]string
	}{
		{"messagehub serve\n", [][]string{{"serve"}}},
		{"A=1 B='2 3' messagehub queue skip a --why 'ticket 1' # why\n", [][]string{{"queue", "skip", "a", "--why", "ticket 1"}}},
		{"messagehub peek \\\n  --actor a > file 2>&1\n", [][]string{{"peek", "--actor", "a"}}},
		{"cat x | bin/messagehub send - && messagehub version; sudo messagehub check\n", [][]string{{"send", "-"}, {"version"}, {"check"}}},
		{"export T=$(messagehub token --actor a)\n", [][]string{{"token", "--actor", "a"}}},
		{"kubectl exec hub-0 -- messagehub version\n", [][]string{{"version"}}},
		{"helm install messagehub chart\nls messagehub\n", nil},
		{"messagehub broker sync - <<'END'\nmessagehub x\nEND\nmessagehub help\n", [][]string{{"broker", "sync", "-"}, {"help"}}},
	} {
		require.Equal(t, tc.want, commandsOf(tc.script), tc.script)
	}
}

func TestAcceptCommand_RefusesWhatTheCommandRefuses(t *testing.T) {
	for _, tc := range []struct {
		command, want string
	}{
		{"serve --listen 127.0.0.1:0", ""},
		{"melt", "unknown command"},
		{"serve --melt", "unknown flag"},
		{"queue melt", "unknown command"},
		{"send", "want one FILE"},
		{"help install", ""},
		{"help melt", "no topic"},
	} {
		err := acceptCommand(strings.Fields(tc.command))
		if tc.want == "" {
			require.NoError(t, err, tc.command)
		} else {
			require.ErrorContains(t, err, tc.want, tc.command)
		}
	}
}
