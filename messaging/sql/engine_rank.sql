-- The order of statuses, as messaging.ranks has it: what evidence may lift stands below its rank. A failure
-- told by ack -1 is lifted by "delivered" and better only.
CREATE FUNCTION engine_rank(p_status text, p_sent text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE p_status WHEN 'sent' THEN 3 WHEN 'delivered' THEN 4 WHEN 'read' THEN 5 WHEN 'played' THEN 6
                       WHEN 'failed' THEN CASE p_sent WHEN 'maybe' THEN 3 ELSE 0 END
                       WHEN 'received' THEN 9 ELSE 0 END
$$;
