package azuretemplate

// newAKS returns the template for a hub on Azure Kubernetes Service. It
// federates the hub's and the scaler's identities with their service accounts;
// the chart creates the other resources.
func newAKS() *template {
	t := &template{about: "Identities of a hub on Azure Kubernetes Service: its service account, and that of KEDA, are federated with them."}
	issuer := t.addParam(param{name: "aksOidcIssuer", kind: "string", description: "Issuer of the cluster: az aks show --query oidcIssuerProfile.issuerUrl"})
	hubSubject := t.addParam(param{name: "hubServiceAccount", kind: "string", description: "Service account of the hub, as NAMESPACE:NAME", value: "messagehub:messagehub"})
	scalerSubject := t.addParam(param{name: "scalerServiceAccount", kind: "string", description: "Service account of KEDA, as NAMESPACE:NAME; that of the add-on is the default", value: "kube-system:keda-operator"})
	for _, i := range []struct {
		name    string
		subject expr
	}{{"hub", hubSubject}, {"scaler", scalerSubject}} {
		name := t.addParam(param{name: i.name + "IdentityName", kind: "string", description: "Name of the identity of the " + i.name})
		identity := t.addResource(&templateResource{symbol: i.name, kind: "Microsoft.ManagedIdentity/userAssignedIdentities", api: identityAPI, name: name, exists: true})
		t.addResource(&templateResource{
			symbol: i.name + "Account", kind: "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials", api: identityAPI, parent: identity, name: "aks",
			body: orderedObject{{"properties", orderedObject{
				{"issuer", issuer},
				{"subject", text{"system:serviceaccount:", i.subject}},
				{"audiences", array{"api://AzureADTokenExchange"}},
			}}},
		})
	}
	return t
}
