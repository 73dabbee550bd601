#!/bin/sh
# The rights of each role in Kafka, for a cluster with allow.everyone.if.no.acl.found=false:
#
#   BOOTSTRAP=kafka-1:9093 CONFIG=operator.properties sh acls.sh
#
# Make the users first, for example:
#   kafka-configs.sh --bootstrap-server "$BOOTSTRAP" --command-config "$CONFIG" --alter \
#     --add-config 'SCRAM-SHA-512=[password=…]' --entity-type users --entity-name recallog-views
#
# The names are those of a ledger `recallog.events`. The group of views of your own is recallog.<their name>.
set -eu
acl() { kafka-acls.sh --bootstrap-server "$BOOTSTRAP" --command-config "$CONFIG" --add "$@"; }

# The operator creates the topics. Its commands copy, rebuild and verify, and `copy --switch` retires a topic by a setting.
# `status` reads sizes on the disks of brokers, which is a right on the cluster.
acl --allow-principal User:recallog-operator --operation Read --operation Write --operation Create --operation DescribeConfigs --operation AlterConfigs --topic recallog. --resource-pattern-type prefixed
acl --allow-principal User:recallog-operator --operation Describe --cluster

# Servers, and programs that open the memory themselves: they publish, and read the ledger for tails and the past.
acl --allow-principal User:recallog-server --operation Read --operation Write --operation DescribeConfigs --topic recallog.events

# Workers in the role views: they fold the ledger, and publish which triggers are due.
acl --allow-principal User:recallog-views --operation Read --operation DescribeConfigs --topic recallog.events
acl --allow-principal User:recallog-views --operation Read --group recallog.built-in. --resource-pattern-type prefixed
acl --allow-principal User:recallog-views --operation Write --topic recallog.triggers

# Workers in the role index.
acl --allow-principal User:recallog-index --operation Read --operation DescribeConfigs --topic recallog.events
acl --allow-principal User:recallog-index --operation Read --group recallog.index. --resource-pattern-type prefixed

# Workers in the role reactors: they publish answers.
acl --allow-principal User:recallog-reactors --operation Read --operation Write --operation DescribeConfigs --topic recallog.events
acl --allow-principal User:recallog-reactors --operation Read --operation Create --topic recallog.triggers
acl --allow-principal User:recallog-reactors --operation Read --group recallog.reactors. --resource-pattern-type prefixed
