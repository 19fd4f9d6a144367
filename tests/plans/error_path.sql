CREATE STREAM pushes (user STRING FROM 'actor.id');
