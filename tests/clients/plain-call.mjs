// ioredis in a cluster as one would write it first.

import { Cluster } from "ioredis";

const redis = new Cluster([process.env.REDIS_URL]);
redis.on("error", console.error);

export const send = (key, name, ...args) => redis.call(name, key, ...args);
