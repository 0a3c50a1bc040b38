package azuretemplate

const appAPI = "2025-01-01"

// Ports of the hub's container. The ingress serves only clientPort; operators
// and probes use operatorPort.
const (
	clientPort   = 8080
	operatorPort = 8081
)

// newContainerApp returns the template of a hub on Azure Container Apps.
func newContainerApp() *template {
	t := &template{about: "A hub on Azure Container Apps: the environment, its logs, and the app."}
	text1 := func(name, description string) expr {
		return t.addParam(param{name: name, kind: "string", description: description})
	}
	location := t.addParam(param{name: "location", kind: "string", description: "Region of all resources", value: groupLocation()})
	name := text1("name", "Name of the app, and what the names of the other resources begin with")
	image := text1("image", "Image of MessageHub, such as example.azurecr.io/messagehub:1.0.0")
	registry := t.addParam(param{name: "registryServer", kind: "string", description: "Registry that the hub's identity pulls the image from, such as example.azurecr.io; empty: one that asks for no credentials", value: ""})
	identityID := text1("hubIdentityId", "Resource id of the hub's identity")
	clientID := text1("hubClientId", "Client id of the hub's identity")
	scalerID := text1("scalerIdentityId", "Resource id of the identity that counts the events that wait")
	busName := text1("serviceBusName", "Name of the Service Bus namespace")
	fifo := text1("fifoQueue", "Queue with sessions that events come by; empty: none")
	plain := text1("plainQueue", "Queue without sessions that events come by; empty: none")
	settings := t.addParam(param{name: "settings", kind: "array", description: "Settings of the hub, as {name, value}"})
	issuer := text1("oidcIssuer", "Issuer whose tokens say who sends a request, such as https://login.microsoftonline.com/TENANT/v2.0")
	audience := text1("oidcAudience", "Audience that tokens must be for")
	token := t.addParam(param{name: "adminToken", kind: secret, description: "Bearer token of the operators: at least 32 random characters"})
	pushKey := t.addParam(param{name: "pushSecretKey", kind: secret, description: "Key that seals the secrets of subscriptions: the Base64 of 32 random bytes"})
	subnet := t.addParam(param{name: "infrastructureSubnetId", kind: "string", description: "Subnet of the environment; empty: a network that Azure creates, from which no private endpoint is reached", value: ""})
	external := t.addParam(param{name: "external", kind: "bool", description: "Clients reach the hub over the internet", value: true})
	least := t.addParam(param{name: "minReplicas", kind: "int", description: "Smallest number of nodes", value: 2})
	most := t.addParam(param{name: "maxReplicas", kind: "int", description: "Largest number of nodes", value: 6})
	waiting := t.addParam(param{name: "messagesPerReplica", kind: "int", description: "Events that wait in a queue for each node", value: 1000})

	logs := t.addResource(&templateResource{
		symbol: "logs", kind: "Microsoft.OperationalInsights/workspaces", api: "2023-09-01", name: text{name, "-logs"},
		body: orderedObject{{"location", location}, {"properties", orderedObject{{"sku", orderedObject{{"name", "PerGB2018"}}}, {"retentionInDays", 30}}}},
	})
	environment := t.addResource(&templateResource{
		symbol: "appEnvironment", kind: "Microsoft.App/managedEnvironments", api: appAPI, name: text{name, "-environment"},
		body: orderedObject{{"location", location}, {"properties", orderedObject{
			{"appLogsConfiguration", orderedObject{{"destination", "azure-monitor"}}},
			{"zoneRedundant", negation{isEmpty(subnet)}},
			{"vnetConfiguration", conditional{isEmpty(subnet), nil, orderedObject{{"infrastructureSubnetId", subnet}, {"internal", negation{external}}}}},
			{"workloadProfiles", array{orderedObject{{"name", "Consumption"}, {"workloadProfileType", "Consumption"}}}},
		}}},
	})
	t.addResource(&templateResource{
		comment: "Logs of the hub go to the workspace",
		symbol:  "environmentLogs", kind: "Microsoft.Insights/diagnosticSettings", api: "2021-05-01-preview", scope: environment, name: "logs",
		body: orderedObject{{"properties", orderedObject{
			{"workspaceId", resourceID{logs}},
			{"logs", array{
				orderedObject{{"category", "ContainerAppConsoleLogs"}, {"enabled", true}},
				orderedObject{{"category", "ContainerAppSystemLogs"}, {"enabled", true}},
			}},
		}}},
	})
	rule := func(ruleName string, queue expr) expr {
		return conditional{isEmpty(queue), array{}, array{orderedObject{
			{"name", ruleName},
			{"custom", orderedObject{
				{"type", "azure-servicebus"},
				{"identity", scalerID},
				{"metadata", orderedObject{{"namespace", busName}, {"queueName", queue}, {"messageCount", functionCall{"string", []any{waiting}}}}},
			}},
		}}}
	}
	env := func(name string, value any) orderedObject { return orderedObject{{"name", name}, {"value", value}} }
	probe := func(kind, path string, period, failures int) orderedObject {
		return orderedObject{
			{"type", kind},
			{"httpGet", orderedObject{{"path", path}, {"port", operatorPort}}},
			{"periodSeconds", period},
			{"timeoutSeconds", 3},
			{"failureThreshold", failures},
		}
	}
	app := t.addResource(&templateResource{
		symbol: "app", kind: "Microsoft.App/containerApps", api: appAPI, name: name,
		body: orderedObject{
			{"location", location},
			{"identity", orderedObject{
				{"type", "UserAssigned"},
				{"userAssignedIdentities", functionCall{"union", []any{singleMember{identityID}, singleMember{scalerID}}}},
			}},
			{"properties", orderedObject{
				{"environmentId", resourceID{environment}},
				{"workloadProfileName", "Consumption"},
				{"configuration", orderedObject{
					{"activeRevisionsMode", "Single"},
					{"ingress", orderedObject{{"external", external}, {"targetPort", clientPort}, {"transport", "auto"}, {"allowInsecure", false}}},
					{"registries", conditional{isEmpty(registry), array{}, array{orderedObject{{"server", registry}, {"identity", identityID}}}}},
					{"secrets", array{
						orderedObject{{"name", "admin-token"}, {"value", token}},
						orderedObject{{"name", "push-secret-key"}, {"value", pushKey}},
					}},
				}},
				{"template", orderedObject{
					{"terminationGracePeriodSeconds", 35},
					{"containers", array{orderedObject{
						{"name", "messagehub"},
						{"image", image},
						{"args", array{"serve"}},
						{"resources", orderedObject{{"cpu", functionCall{"json", []any{"1.0"}}}, {"memory", "2Gi"}}},
						{"env", concat(settings, array{
							env("MESSAGEHUB_LISTEN", listenAddress(clientPort)),
							env("MESSAGEHUB_ADMIN_LISTEN", listenAddress(operatorPort)),
							env("MESSAGEHUB_TLS_TERMINATED", "true"),
							env("MESSAGEHUB_WATCHES_BASE", conditional{
								external,
								text{"https://", name, ".", runtime{environment, "defaultDomain"}},
								text{"https://", name, ".internal.", runtime{environment, "defaultDomain"}},
							}),
							env("MESSAGEHUB_OIDC_ISSUER", issuer),
							env("MESSAGEHUB_OIDC_AUDIENCE", audience),
							orderedObject{{"name", "MESSAGEHUB_ADMIN_TOKEN"}, {"secretRef", "admin-token"}},
							orderedObject{{"name", "MESSAGEHUB_PUSH_SECRET_KEY"}, {"secretRef", "push-secret-key"}},
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
							orderedObject{{"volumeName", "temporary"}, {"mountPath", "/tmp"}},
						}},
					}}},
					{"scale", orderedObject{{"minReplicas", least}, {"maxReplicas", most}, {"rules", concat(rule("fifo", fifo), rule("plain", plain))}}},
					{"volumes", array{
						orderedObject{{"name", "temporary"}, {"storageType", "EmptyDir"}},
					}},
				}},
			}},
		},
	})
	t.outputs = []output{{"url", "string", text{"https://", runtime{app, "configuration.ingress.fqdn"}}}}
	return t
}
