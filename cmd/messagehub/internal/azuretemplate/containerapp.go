package azuretemplate

const appAPI = "2025-01-01"

// Ports of the hub in a container. Clients reach the first one by the ingress; operators and probes
// use the second one, which the ingress does not have.
const (
	clientPort   = 8080
	operatorPort = 8081
)

// newContainerApp returns the template of a hub on Azure Container Apps.
func newContainerApp() *template {
	t := &template{about: "A hub on Azure Container Apps: the environment, its logs, and the app."}
	text1 := func(name, description string) expr {
		return t.param(param{name: name, kind: "string", description: description})
	}
	location := t.param(param{name: "location", kind: "string", description: "Region of all resources", value: groupLocation()})
	name := text1("name", "Name of the app, and what the names of the other resources begin with")
	image := text1("image", "Image of MessageHub, such as example.azurecr.io/messagehub:1.0.0")
	registry := t.param(param{name: "registryServer", kind: "string", description: "Registry that the hub's identity pulls the image from, such as example.azurecr.io; empty: one that asks for no credentials", value: ""})
	identityID := text1("hubIdentityId", "Resource id of the hub's identity")
	clientID := text1("hubClientId", "Client id of the hub's identity")
	scalerID := text1("scalerIdentityId", "Resource id of the identity that counts the events that wait")
	busName := text1("serviceBusName", "Name of the Service Bus namespace")
	fifo := text1("fifoQueue", "Queue with sessions that events come by; empty: none")
	plain := text1("plainQueue", "Queue without sessions that events come by; empty: none")
	settings := t.param(param{name: "settings", kind: "array", description: "Settings of the hub, as {name, value}"})
	issuer := text1("oidcIssuer", "Issuer whose tokens say who sends a request, such as https://login.microsoftonline.com/TENANT/v2.0")
	audience := text1("oidcAudience", "Audience that tokens must be for")
	token := t.param(param{name: "adminToken", kind: secret, description: "Bearer token of the operators: at least 32 random characters"})
	pushKey := t.param(param{name: "pushSecretKey", kind: secret, description: "Key that seals the secrets of subscriptions: the Base64 of 32 random bytes"})
	subnet := t.param(param{name: "infrastructureSubnetId", kind: "string", description: "Subnet of the environment; empty: a network that Azure creates, from which no private endpoint is reached", value: ""})
	external := t.param(param{name: "external", kind: "bool", description: "Clients reach the hub over the internet", value: true})
	least := t.param(param{name: "minReplicas", kind: "int", description: "Smallest number of nodes", value: 2})
	most := t.param(param{name: "maxReplicas", kind: "int", description: "Largest number of nodes", value: 6})
	waiting := t.param(param{name: "messagesPerReplica", kind: "int", description: "Events that wait in a queue for each node", value: 1000})

	logs := t.add(&resource{
		symbol: "logs", kind: "Microsoft.OperationalInsights/workspaces", api: "2023-09-01", name: text{name, "-logs"},
		body: object{{"location", location}, {"properties", object{{"sku", object{{"name", "PerGB2018"}}}, {"retentionInDays", 30}}}},
	})
	environment := t.add(&resource{
		symbol: "appEnvironment", kind: "Microsoft.App/managedEnvironments", api: appAPI, name: text{name, "-environment"},
		body: object{{"location", location}, {"properties", object{
			{"appLogsConfiguration", object{{"destination", "azure-monitor"}}},
			{"zoneRedundant", negation{isEmpty(subnet)}},
			{"vnetConfiguration", choice{isEmpty(subnet), nil, object{{"infrastructureSubnetId", subnet}, {"internal", negation{external}}}}},
			{"workloadProfiles", array{object{{"name", "Consumption"}, {"workloadProfileType", "Consumption"}}}},
		}}},
	})
	t.add(&resource{
		comment: "Logs of the hub go to the workspace",
		symbol:  "environmentLogs", kind: "Microsoft.Insights/diagnosticSettings", api: "2021-05-01-preview", scope: environment, name: "logs",
		body: object{{"properties", object{
			{"workspaceId", resourceID{logs}},
			{"logs", array{
				object{{"category", "ContainerAppConsoleLogs"}, {"enabled", true}},
				object{{"category", "ContainerAppSystemLogs"}, {"enabled", true}},
			}},
		}}},
	})
	rule := func(ruleName string, queue expr) expr {
		return choice{isEmpty(queue), array{}, array{object{
			{"name", ruleName},
			{"custom", object{
				{"type", "azure-servicebus"},
				{"identity", scalerID},
				{"metadata", object{{"namespace", busName}, {"queueName", queue}, {"messageCount", call{"string", []any{waiting}}}}},
			}},
		}}}
	}
	env := func(name string, value any) object { return object{{"name", name}, {"value", value}} }
	probe := func(kind, path string, period, failures int) object {
		return object{
			{"type", kind},
			{"httpGet", object{{"path", path}, {"port", operatorPort}}},
			{"periodSeconds", period},
			{"timeoutSeconds", 3},
			{"failureThreshold", failures},
		}
	}
	app := t.add(&resource{
		symbol: "app", kind: "Microsoft.App/containerApps", api: appAPI, name: name,
		body: object{
			{"location", location},
			{"identity", object{
				{"type", "UserAssigned"},
				{"userAssignedIdentities", call{"union", []any{keyed{identityID}, keyed{scalerID}}}},
			}},
			{"properties", object{
				{"environmentId", resourceID{environment}},
				{"workloadProfileName", "Consumption"},
				{"configuration", object{
					{"activeRevisionsMode", "Single"},
					{"ingress", object{{"external", external}, {"targetPort", clientPort}, {"transport", "auto"}, {"allowInsecure", false}}},
					{"registries", choice{isEmpty(registry), array{}, array{object{{"server", registry}, {"identity", identityID}}}}},
					{"secrets", array{
						object{{"name", "admin-token"}, {"value", token}},
						object{{"name", "push-secret-key"}, {"value", pushKey}},
					}},
				}},
				{"template", object{
					{"terminationGracePeriodSeconds", 35},
					{"containers", array{object{
						{"name", "messagehub"},
						{"image", image},
						{"args", array{"serve"}},
						{"resources", object{{"cpu", call{"json", []any{"1.0"}}}, {"memory", "2Gi"}}},
						{"env", concat(settings, array{
							env("MESSAGEHUB_LISTEN", listenAddress(clientPort)),
							env("MESSAGEHUB_ADMIN_LISTEN", listenAddress(operatorPort)),
							env("MESSAGEHUB_TLS_TERMINATED", "true"),
							env("MESSAGEHUB_WATCHES_BASE", choice{
								external,
								text{"https://", name, ".", runtime{environment, "defaultDomain"}},
								text{"https://", name, ".internal.", runtime{environment, "defaultDomain"}},
							}),
							env("MESSAGEHUB_OIDC_ISSUER", issuer),
							env("MESSAGEHUB_OIDC_AUDIENCE", audience),
							object{{"name", "MESSAGEHUB_ADMIN_TOKEN"}, {"secretRef", "admin-token"}},
							object{{"name", "MESSAGEHUB_PUSH_SECRET_KEY"}, {"secretRef", "push-secret-key"}},
							env("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential"),
							env("AZURE_CLIENT_ID", clientID),
							env("GOMEMLIMIT", "1700MiB"),
						})},
						{"probes", array{
							probe("Startup", "/healthz", 2, 60),
							probe("Liveness", "/healthz", 10, 3),
							probe("Readiness", "/readyz", 5, 2),
						}},
						{"volumeMounts", array{
							object{{"volumeName", "temporary"}, {"mountPath", "/tmp"}},
						}},
					}}},
					{"scale", object{{"minReplicas", least}, {"maxReplicas", most}, {"rules", concat(rule("fifo", fifo), rule("plain", plain))}}},
					{"volumes", array{
						object{{"name", "temporary"}, {"storageType", "EmptyDir"}},
					}},
				}},
			}},
		},
	})
	t.outputs = []output{{"url", "string", text{"https://", runtime{app, "configuration.ingress.fqdn"}}}}
	return t
}
